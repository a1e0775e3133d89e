"""Finds tools: in the package `agentd.tools`, in entry points, in the home's `tools/`."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from agentd.domain.errors import AgentdError, ToolDefinitionError
from agentd.toolkit.definition import Tool, tool_of
from agentd.toolkit.registry import ToolRegistry

ENTRY_POINTS = "agentd.tools"
_PACKAGE = "agentd.tools"  # by name: the tools stand above what finds them


@dataclass(slots=True)
class Discovered:
    """`problems`: what could not be loaded; everything else was."""

    tools: list[Tool] = field(default_factory=list[Tool])
    problems: list[AgentdError] = field(default_factory=list[AgentdError])


def discover(home_tools: Path | None = None) -> Discovered:
    """All tools, those of the package first. A foreign file that is broken stops nothing else."""
    found = Discovered()
    package = importlib.import_module(_PACKAGE)
    for info in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        found.tools += tools_of(importlib.import_module(info.name))
    for point in entry_points(group=ENTRY_POINTS):
        _load(found, f"entry point {point.name} ({point.value})", point.load)
    files = sorted(home_tools.glob("*.py")) if home_tools is not None else []
    for file in files:
        _load(found, str(file), lambda file=file: _import_file(file))
    return found


def load_registry(
    config: object, home_tools: Path | None = None
) -> tuple[ToolRegistry, list[AgentdError]]:
    """The tools that are available with `config`, and what of them could not be loaded."""
    found = discover(home_tools)
    registry = ToolRegistry(config)
    problems = list(found.problems)
    for each in found.tools:
        try:
            registry.register(each)
        except AgentdError as error:
            problems.append(error)
    return registry, problems


def tools_of(module: ModuleType) -> Iterator[Tool]:
    """The tools that are written in a module, in their order; not those that it imported."""
    for value in vars(module).values():
        made = tool_of(value)
        if made is not None and made.function.__module__ == module.__name__:
            yield made


def _load(found: Discovered, where: str, load: Callable[[], object]) -> None:
    try:
        loaded = load()
    except AgentdError as error:
        found.problems.append(error)
    except Exception as error:  # noqa: BLE001 - a foreign module may raise anything at import
        found.problems.append(
            ToolDefinitionError(
                f"{where} can not be imported: {type(error).__name__}: {error}",
                hint="Mend it or move it away; the other tools are not affected.",
            )
        )
    else:
        if isinstance(loaded, ModuleType):
            found.tools += tools_of(loaded)
        elif (made := tool_of(loaded)) is not None:
            found.tools.append(made)


def _import_file(file: Path) -> ModuleType:
    name = f"agentd_home_tools.{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
