"""The composition root: the one file that knows every concrete class.

It loads the whole agent, so the command line imports it only where it runs one or calls a tool.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import structlog

from agentd.agent.asking import Asking
from agentd.agent.dispatch import Dispatch
from agentd.agent.journal import Journal
from agentd.agent.loop import Bounds, Loop
from agentd.agent.opening import Opening
from agentd.agent.prompt import system_prompt
from agentd.config import Config
from agentd.daemon.checks import Bounds as HealthBounds
from agentd.daemon.daemon import Daemon, DaemonSettings
from agentd.daemon.health_files import HealthFiles
from agentd.daemon.notify import Notifier
from agentd.daemon.supervisor import Until
from agentd.daemon.watchdog import Sources, Watchdog
from agentd.daemon.worker import Assignment, Worker
from agentd.domain.clock import Clock, SystemClock
from agentd.domain.errors import AgentdError
from agentd.domain.health import HealthReader
from agentd.domain.run import Run
from agentd.domain.usage import Price
from agentd.models.model import Model
from agentd.models.prices import price_of
from agentd.models.retrying import Backoff
from agentd.models.select import ProviderSettings, open_model
from agentd.sandbox.workspace import Workspace
from agentd.store.connection import Connection
from agentd.store.daemons import DaemonStore
from agentd.store.events import EventStore
from agentd.store.runs import RunStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from agentd.toolkit.call import RolledBack, call
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.discover import load_registry
from agentd.toolkit.inject import CallContext, Injector, PerCall
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult

_log = structlog.get_logger()
# Python's 5 ms would let each statement of the database thread wait for a burst of the loop.
_SWITCH_S = 0.001


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a home, what they may be given, and what of them could not be loaded."""

    registry: ToolRegistry
    injector: Injector
    problems: Sequence[AgentdError]


def make_injector(config: Config, store: Store, clock: Clock) -> Injector:
    """Every capability that a tool can ask for. There is no other way to one."""
    workspace = Workspace(config.workspace_path)
    return Injector(
        {
            Config: lambda _: config,
            Clock: lambda _: clock,
            Run: lambda context: context.run,
            HealthReader: lambda _: HealthFiles(config.run_path, clock),
            Workspace: lambda _: workspace,
            Store: lambda _: store,
            Connection: lambda context: PerCall(context.store.transaction()),
            TaskStore: lambda context: TaskStore(context.store, clock),
            RunStore: lambda context: RunStore(context.store, clock),
            EventStore: lambda context: EventStore(context.store, clock),
            SessionStore: lambda context: SessionStore(context.store, clock),
        }
    )


def make_toolbox(config: Config, store: Store) -> Toolbox:
    """For whoever calls tools outside a run: the command line."""
    registry, problems = load_registry(config, config.tools_path)
    return Toolbox(registry, make_injector(config, store, SystemClock()), problems)


async def call_tool(toolbox: Toolbox, store: Store, tool: Tool, raw: object) -> ToolResult:
    """Call a tool for a person, outside any run. Never raises."""
    if tool.effect is not Effect.TRANSACTIONAL:
        return await call(tool, raw, toolbox.injector, CallContext(store))
    try:
        async with store.transaction() as conn:
            result = await call(tool, raw, toolbox.injector, CallContext(conn))
            if result.is_error:
                raise RolledBack(result)  # noqa: TRY301 - leaving the block is what rolls back
    except RolledBack as rolled_back:
        return rolled_back.result
    return result


@dataclass
class LoopFactory:
    """Makes the loop of one assignment; models and the tools' schemas are shared by all."""

    config: Config
    store: Store
    clock: Clock
    toolbox: Toolbox
    models: dict[str, Model] = field(default_factory=dict[str, Model])

    def __post_init__(self) -> None:
        self._tools = self.toolbox.registry.to_model_tools("worker")
        self._system = system_prompt(self.config.workspace_path, self.config.prompts_path)
        prices = {
            name: Price(**each.model_dump()) for name, each in self.config.models.prices.items()
        }
        self._price = partial(price_of, overrides=prices)

    def __call__(self, assignment: Assignment) -> Loop:
        config, task = self.config, assignment.claim.task
        journal = Journal(assignment.claim.run, self.store, self.clock)
        limits = task.limits
        iterations = limits.max_tool_iterations
        return Loop(
            journal=journal,
            opening=Opening(journal, assignment.claim),
            asking=Asking(
                model=self.model(task.model or config.agent.model),
                journal=journal,
                patience=_patience(config),
                price=self._price,
                stopping=assignment.stopping,
            ),
            dispatch=Dispatch(
                journal=journal,
                store=self.store,
                registry=self.toolbox.registry,
                injector=self.toolbox.injector,
                stopping=assignment.stopping,
                inline_chars=config.results.inline_chars,
            ),
            bounds=Bounds(
                config.agent.max_tool_iterations if iterations is None else iterations,
                config.agent.max_tokens,
                limits.deadline_s or config.agent.deadline_seconds,
                config.agent.max_reminders,
            ),
            system=self._system,
            tools=self._tools,
            strings=assignment,
        )

    def model(self, spec: str) -> Model:
        """Opened once for each name. Raises ConfigError."""
        if spec not in self.models:
            self.models[spec] = open_model(spec, _provider_settings(self.config))
        return self.models[spec]


async def serve(config: Config, store: Store, until: Until) -> int:
    """`agentd run`, until a signal or `until`. The number of tasks that were claimed."""
    sys.setswitchinterval(_SWITCH_S)
    clock = SystemClock()
    toolbox = make_toolbox(config, store)
    for problem in toolbox.problems:
        _log.error("a tool could not be loaded", error=problem.message, hint=problem.hint)
    context = CallContext(store)
    await toolbox.registry.start(toolbox.injector, context)
    factory = LoopFactory(config, store, clock, toolbox)
    try:
        # Its SDK takes a second to load: not while the first task waits for it.
        factory.model(config.agent.model)
        return await _daemon(config, store, clock, factory).run(until)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.registry.stop(toolbox.injector, context)
            for model in factory.models.values():
                await model.aclose()


def _daemon(config: Config, store: Store, clock: Clock, factory: LoopFactory) -> Daemon:
    runs = RunStore(store, clock)
    notifier = Notifier.from_environment(os.environ)
    return Daemon(
        run_directory=config.run_path,
        daemons=DaemonStore(store, clock),
        runs=runs,
        worker=Worker(runs, factory),
        clock=clock,
        settings=DaemonSettings(
            config.daemon.concurrency, config.daemon.poll_seconds, config.daemon.drain_seconds
        ),
        stopping=anyio.Event(),
        untouched=store.untouched,
        watchdog=_watchdog(config, store, clock, notifier),
        notifier=notifier,
    )


def _watchdog(config: Config, store: Store, clock: Clock, notifier: Notifier) -> Watchdog:
    settings = config.watchdog
    return Watchdog(
        Sources(
            home=config.home,
            run_directory=config.run_path,
            ask_database=store.ping,
            untouched=store.untouched,
            breaker_states=dict[str, str],
            clock=clock,
        ),
        HealthBounds(
            memory_warn_mb=settings.memory_warn_mb,
            memory_fail_mb=settings.memory_fail_mb,
            lag_warn_s=settings.lag_warn_ms / 1000,
            lag_fail_s=settings.lag_fail_ms / 1000,
            disk_least_mb=settings.disk_least_mb,
            database_warn_s=settings.database_warn_ms / 1000,
            database_fail_s=settings.database_fail_ms / 1000,
        ),
        interval_s=settings.interval_seconds,
        first_s=settings.first_seconds,
        tell=notifier.status,
    )


def _patience(config: Config) -> Backoff:
    models = config.models
    return Backoff(
        attempts=models.retry_attempts,
        base_s=models.retry_base_seconds,
        cap_s=models.retry_cap_seconds,
        retry_after_cap_s=models.retry_after_cap_seconds,
    )


def _provider_settings(config: Config) -> ProviderSettings:
    key = config.models.anthropic.api_key
    return ProviderSettings(
        anthropic_key=key.get_secret_value() if key else None,
        anthropic_base_url=config.models.anthropic.base_url,
        stall_s=config.models.stall_seconds,
    )
