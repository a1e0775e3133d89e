"""What every command shares: the home, its configuration, an opened store."""

import math
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio
import click

from agentd.config import Config, load_config
from agentd.config_sections import model_spec
from agentd.daemon.wake import poke
from agentd.domain.budget import microusd
from agentd.domain.clock import SystemClock
from agentd.domain.redactor import Redactor
from agentd.home import find_home, require_home
from agentd.known_secrets import known_secrets
from agentd.store.daemons import DaemonStore
from agentd.store.events import EventStore
from agentd.store.model_calls import ModelCallStore
from agentd.store.runs import RunStore
from agentd.store.schedules import ScheduleStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

if TYPE_CHECKING:
    from agentd.schedules.scheduling import Scheduling

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


def open_store(config: Config) -> Store:
    """The database of a home; commits that change the queue wake its daemons."""
    return Store(
        config.database_path,
        busy_s=config.store.busy_seconds,
        transaction_s=config.store.transaction_seconds,
        announce=partial(poke, config.run_path),
        redactor=known_secrets(config, os.environ),
    )


@dataclass(frozen=True)
class Opened:
    """The store of a home, and its tables."""

    config: Config
    store: Store

    @cached_property
    def clock(self) -> SystemClock:
        return SystemClock()

    @property
    def tasks(self) -> TaskStore:
        return TaskStore(self.store, self.clock)

    @property
    def sessions(self) -> SessionStore:
        return SessionStore(self.store, self.clock)

    @property
    def events(self) -> EventStore:
        return EventStore(self.store, self.clock)

    @property
    def runs(self) -> RunStore:
        return RunStore(self.store, self.clock)

    @property
    def daemons(self) -> DaemonStore:
        return DaemonStore(self.store, self.clock)

    @property
    def schedules(self) -> ScheduleStore:
        return ScheduleStore(self.store, self.clock)

    @property
    def scheduling(self) -> "Scheduling":
        from agentd.schedules.scheduling import Scheduling  # noqa: PLC0415 - enqueue needs none

        return Scheduling(self.store, self.clock, self.config.schedules)

    @property
    def model_calls(self) -> ModelCallStore:
        return ModelCallStore(self.store)


@dataclass
class Context:
    """Hangs on click's context. `explicit_home` is what --home said."""

    explicit_home: Path | None = None
    overrides: Mapping[str, object] = field(default_factory=dict[str, object])

    @cached_property
    def home(self) -> Path:
        """Where the home is or would be; it may not exist yet."""
        return find_home(self.explicit_home, os.environ, Path.cwd())

    @cached_property
    def config(self) -> Config:
        """Raises ConfigError when there is no home, or a setting is wrong."""
        return load_config(require_home(self.home), self.overrides)

    def redactor(self) -> Redactor:
        """Knows this installation's secrets; without settings, those of the environment."""
        loaded = self.__dict__.get("config")
        return known_secrets(loaded if isinstance(loaded, Config) else None, os.environ)

    def run(self, work: Callable[[Opened], Awaitable[T]]) -> T:
        """What `work` returns, given the opened store."""
        config = self.config

        async def main() -> T:
            async with open_store(config) as store:
                return await work(Opened(config, store))

        return anyio.run(main)


def _set_home(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Context).explicit_home = value


def _check_model(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Refuse what no daemon could use; a script is found wherever the daemon was started."""
    if value is None:
        return None
    try:
        provider, _, name = model_spec(value).partition(":")
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if provider == "scripted":
        from agentd.models.scripted import is_built_in  # noqa: PLC0415 - seldom needed

        if Path(name).is_file() and not is_built_in(name):
            return f"scripted:{Path(name).resolve()}"
    return value


def model_option(text: str) -> Callable[[F], F]:
    """--model, explained by `text`."""
    return click.option("--model", callback=_check_model, help=text)


class Budget(NamedTuple):
    """What a task may cost and take, as its limits say it; None: nothing is said."""

    max_cost_microusd: int | None
    max_total_tokens: int | None


def budget_options(command: Callable[..., object]) -> Callable[..., object]:
    """--max-cost and --max-total-tokens, as the parameter `budget`."""

    @wraps(command)
    def with_budget(
        *arguments: object, max_cost: float | None, max_total_tokens: int | None, **options: object
    ) -> object:
        if max_cost is not None and math.isnan(max_cost):
            raise click.BadParameter("must be a number of dollars", param_hint="--max-cost")
        cost = None if max_cost is None else microusd(max_cost)
        return command(*arguments, budget=Budget(cost, max_total_tokens), **options)

    tokens = click.option(
        "--max-total-tokens",
        type=click.IntRange(1, 1 << 53),
        help="Tokens of all kinds it may take.",
    )
    cost = click.option(
        "--max-cost",
        type=click.FloatRange(0, 1e9, min_open=True),
        metavar="USD",
        help="Dollars that all its model calls may cost.",
    )
    return cost(tokens(with_budget))


pass_context = click.make_pass_decorator(Context, ensure=True)
# Also after the command's name, where people look for it: agentd init --home X.
home_option = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_set_home,
    expose_value=False,
    is_eager=True,
    help="The home; else AGENTD_HOME, else .agentd here or above, else the user's data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
limit_option = click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at the most."
)
offset_option = click.option(
    "--offset", type=click.IntRange(0), default=0, help="How many to pass over first."
)
