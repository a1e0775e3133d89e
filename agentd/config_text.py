"""The settings as text: the documented agentd.toml, and the list behind `agentd config`."""

import json
import textwrap
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from agentd.config import Config
from agentd.config_errors import fields, variable
from agentd.domain.jsons import is_object

_HEAD = """\
# The settings of this agentd home. Every key is shown with its default; take away the "# " in front
# of one to change it. A variable AGENTD_SECTION__KEY does the same and goes first, for example
# AGENTD_DAEMON__CONCURRENCY=8. `agentd config` shows what is in force and where it came from.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """`source`: default, file, environment or override. A secret's value is masked."""

    key: str
    value: Any
    source: str
    variable: str
    description: str


def template() -> str:
    """The text of a fresh agentd.toml."""
    lines = [_HEAD]
    section = ""
    for key, field in fields(Config):
        here, _, name = key.rpartition(".")
        if here != section:
            section = here
            lines.append(f"\n[{section}]" if section else "")
        lines += ["# " + line for line in textwrap.wrap(field.description or "", 96)]
        default = field.get_default(call_default_factory=True)
        if not here:
            lines.append(f"# [[{key}]]")
        elif default == {}:
            lines.append(f'# [{key}."MODEL"]')
        elif default is None or default is PydanticUndefined:
            lines.append(f"# {name} =")
        else:
            lines.append(f"# {name} = {json.dumps(default)}")
    return "\n".join(lines) + "\n"


def explain(config: Config) -> list[Setting]:
    """Every setting with its effective value and where it came from."""
    found: list[Setting] = []
    for key, field in fields(Config):
        value: Any = config
        for part in key.split("."):
            value = getattr(value, part)
        source = next(
            (s for k, s in config.sources.items() if k == key or k.startswith(key + ".")), "default"
        )
        found.append(Setting(key, _shown(value), source, variable(key), field.description or ""))
    return found


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return "********"
    if isinstance(value, tuple):
        return [each.model_dump() for each in cast("tuple[BaseModel, ...]", value)]
    if is_object(value):
        return {name: price.model_dump() for name, price in value.items()}
    if isinstance(value, tuple):
        several = cast("tuple[object, ...]", value)
        return [each.model_dump() if isinstance(each, BaseModel) else each for each in several]
    return value
