"""The tools of one installation, by unique names. An object, made in the composition root."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import structlog

from agentd.domain.errors import ToolDefinitionError
from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.adapters.stubs import generate_stubs
from agentd.toolkit.call import call
from agentd.toolkit.definition import Tool, needs_of
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.result import ToolResult

_log = structlog.get_logger()


class ToolSource(Protocol):
    """Tools that come and go while the daemon runs. `version` changes when they do."""

    @property
    def version(self) -> int: ...

    def find(self, name: str) -> Tool | None:
        """The tool of that name, shown or not."""
        ...

    def shown(self, others: int) -> Sequence[Tool]:
        """Those to be shown beside `others` of our own."""
        ...


class ToolRegistry:
    """`config` is what `available` predicates are asked with."""

    def __init__(self, config: object = None, tools: Iterable[Tool] = ()) -> None:
        self._config = config
        self._tools: dict[str, Tool] = {}
        self._started: list[Tool] = []
        self._source: ToolSource | None = None
        for each in tools:
            self.register(each)

    def register(self, tool: Tool) -> None:
        """Add a tool and its aliases, if it is available.

        Raises ToolDefinitionError for a name that is taken.
        """
        if tool.available is not None and not tool.available(self._config):
            return
        faces = tool.faces()
        for face in faces:
            taken = self._tools.get(face.name)
            if taken is not None:
                raise ToolDefinitionError(
                    f"two tools are named {face.name!r}: {taken.place} and {face.place}",
                    hint="Rename one of them.",
                )
        names = [face.name for face in faces]
        if len(set(names)) < len(names):
            raise ToolDefinitionError(f"{tool.place} has a name twice: {', '.join(names)}")
        self._tools |= {face.name: face for face in faces}

    def attach(self, source: ToolSource) -> None:
        """Offer its tools, too. One of our own wins where the names are the same."""
        self._source = source

    @property
    def version(self) -> int:
        """Changes when `definitions` may have changed."""
        return self._source.version if self._source else 0

    def definitions(self, toolset: str | None = None) -> Sequence[Tool]:
        """The tools of a toolset, or all, ordered by name: the order is part of what is cached."""
        tools = dict(self._tools)
        if self._source is not None:
            others = [each for each in tools.values() if _is_in(each, toolset)]
            shown = {each.name: each for each in self._source.shown(len(others))}
            tools = {**shown, **tools}
        return [tools[name] for name in sorted(tools) if _is_in(tools[name], toolset)]

    def find(self, name: str) -> Tool | ToolResult:
        """The tool of that name, or the result that says that there is none."""
        found = self._tools.get(name)
        if found is None and self._source is not None:
            found = self._source.find(name)
        if found is not None:
            return found
        names = [each.name for each in self.definitions()]
        close = difflib.get_close_matches(name, names, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Tools: {', '.join(names)}"
        return ToolResult.failure(
            "unknown_tool", f"there is no tool {name!r}", next_action_hint=hint
        )

    async def dispatch(
        self, name: str, raw: Any, injector: Injector, context: CallContext
    ) -> ToolResult:
        """Look up, validate, call. Never raises; cancellation passes through."""
        found = self.find(name)
        return found if isinstance(found, ToolResult) else await call(found, raw, injector, context)

    def to_model_tools(self, toolset: str | None = None) -> list[dict[str, Any]]:
        """The definitions as the Messages API takes them."""
        return to_anthropic(self.definitions(toolset))

    def generate_stubs(self, toolset: str | None = None) -> str:
        """Python source with one function for each tool, for sandboxed code."""
        return generate_stubs(self.definitions(toolset))

    async def start(self, injector: Injector, context: CallContext) -> None:
        """Run each tool's `start`. A tool whose start fails is taken out; the others go on."""
        for each in list(self.definitions()):
            if each.start is None or each.alias_of is not None:
                continue
            try:
                await _run_hook(each.start, injector, context)
            except Exception:  # noqa: BLE001 - a foreign hook may raise anything
                _log.exception("a tool could not start and is left out", tool=each.name)
                for face in each.faces():
                    del self._tools[face.name]
            else:
                self._started.append(each)

    async def stop(self, injector: Injector, context: CallContext) -> None:
        """Run each tool's `stop`, the last started first; all of them, whatever happens."""
        started = {each.name for each in self._started}
        only_stop = [
            each
            for each in self.definitions()
            if each.start is None and each.stop is not None and each.alias_of is None
        ]
        for each in [*only_stop, *reversed(self._started)]:
            if each.stop is None or (each.start is not None and each.name not in started):
                continue
            try:
                await _run_hook(each.stop, injector, context)
            except Exception:  # noqa: BLE001 - a foreign hook may raise anything
                _log.exception("a tool could not stop", tool=each.name)
        self._started.clear()


def _is_in(tool: Tool, toolset: str | None) -> bool:
    return toolset is None or toolset in tool.toolsets


async def _run_hook(hook: Callable[..., Any], injector: Injector, context: CallContext) -> None:
    async with injector.open(needs_of(hook), context) as arguments:
        outcome = hook(**arguments)
        if inspect.isawaitable(outcome):
            await outcome
