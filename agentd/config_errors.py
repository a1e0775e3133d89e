"""Says what is wrong with a setting: where it stands, its key, what was found and expected."""

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_PREFIX = "AGENTD_"
_PLACES = {"environment": "{variable}", "override": "the command line"}
_NOT_SETTINGS = {"AGENTD_HOME", "AGENTD_VENV"}


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting with its dotted key."""
    for name, field in model.model_fields.items():
        section = _section(field.annotation)
        if section is not None:
            yield from fields(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def explain_problems(
    model: type[BaseModel], error: ValidationError, sources: Mapping[str, str], path: Path
) -> str:
    """One line for each problem."""
    known = [key for key, _ in fields(model)]
    lines: list[str] = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        whole = _setting(key, known)
        where = sources.get(whole, sources.get(key, "file"))
        place = _PLACES.get(where, str(path)).format(variable=variable(whole))
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
            lines.append(f"{place}: unknown key {key}; {hint}")
        else:
            expected = problem["msg"].removeprefix("Value error, ")
            whole_section = isinstance(problem["input"], dict)
            silent = problem["type"] == "missing" or key.endswith("api_key") or whole_section
            found = "" if silent else f", found {problem['input']!r}"
            lines.append(f"{place}: {key}: {expected}{found}")
    return "\n".join(lines)


def unknown_variables(model: type[BaseModel], environment: Mapping[str, str]) -> list[str]:
    """One line for each AGENTD_* variable that sets nothing."""
    known = {variable(key) for key, _ in fields(model)} | _NOT_SETTINGS
    tables = tuple(variable(key) + "__" for key, field in fields(model) if _is_table(field))
    sections = {name.rpartition("__")[0] for name in known}
    lines: list[str] = []
    for name in sorted(environment):
        if not name.startswith(_PREFIX) or name in known | sections or name.startswith(tables):
            continue
        close = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {close[0]}?" if close else "`agentd config` shows all settings"
        lines.append(f"{name}: no such setting; {hint}")
    return lines


def variable(key: str) -> str:
    """The environment variable of a dotted key."""
    return _PREFIX + key.upper().replace(".", "__")


def _setting(key: str, known: Sequence[str]) -> str:
    """The setting that a key is, or stands in: a list is one setting, with all of its elements."""
    return next((each for each in known if key.startswith(f"{each}.")), key)


def _section(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias)
    return annotation if is_model and issubclass(annotation, BaseModel) else None


def _is_table(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is dict and len(get_args(field.annotation)) == 2
