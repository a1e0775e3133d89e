"""`@tool`: a function is the whole tool. Everything else is read from its signature.

Name, description, input and output come from the function's name, docstring, annotated parameters
and return type. A parameter whose type is a capability is injected and is no part of the input.
"""

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolDefinitionError
from agentd.toolkit.given import GivenSchema

F = TypeVar("F", bound=Callable[..., Any])
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MARK = "__agentd_tool__"


class Effect(StrEnum):
    """What a crash in the middle of a call means."""

    READ = "read"  # run again
    IDEMPOTENT = "idempotent"  # run again with the same arguments
    TRANSACTIONAL = "transactional"  # in our database, in one transaction with its result
    RECONCILABLE = "reconcilable"  # `reconcile` asks the world whether it happened
    EXTERNAL = "external"  # never repeated; the model is told that the outcome is unknown


@dataclass(frozen=True, slots=True)
class Need:
    """A capability that a parameter asks for. `optional`: None will do."""

    kind: type
    optional: bool


@dataclass(frozen=True, slots=True)
class Alias:
    """The same function under another name: own defaults, parameters hidden, own description.

    `fields`: parameters that are described to the model in another way, as annotated types.
    """

    name: str
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hidden: Sequence[str] = ()
    description: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Tool:
    """One tool. `available`: asked with the configuration, False hides it.

    `start` and `stop`: run once with the daemon, with injected capabilities. `reconcile`: for an
    effect of that kind; takes what the tool takes and returns its result, or None when it did not
    happen. `slash`: a regular expression for slash commands. `timeout_s`: None is no limit.
    `outside`: what it gives was written by strangers (a web page), and the model is told so.
    `given_input`, `given_output`: schemas that somebody else wrote (an MCP server); the function
    then takes the input as one parameter `arguments`, and `fields` is empty.
    `routed`: the loop carries it out, the function is only its definition. `in_programs`: False
    where a person or the model itself must decide, as about an approval.
    """

    name: str
    description: str
    group: str
    function: Callable[..., Any]
    fields: Mapping[str, tuple[Any, Any]]
    needs: Mapping[str, Need]
    returns: Any
    terminal: bool = False
    effect: Effect = Effect.EXTERNAL
    slash: str | None = None
    aliases: tuple[Alias, ...] = ()
    toolsets: frozenset[str] = frozenset({"worker"})
    approval: bool = False
    outside: bool = False
    routed: bool = False
    in_programs: bool = True
    available: Callable[[Any], bool] | None = None
    timeout_s: float | None = None
    start: Callable[..., Any] | None = None
    stop: Callable[..., Any] | None = None
    reconcile: Callable[..., Any] | None = None
    alias_of: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given_input: GivenSchema | None = None
    given_output: GivenSchema | None = None

    @cached_property
    def input_model(self) -> type[BaseModel]:
        """The input as a pydantic model; unknown fields are refused."""
        fields: dict[str, Any] = dict(self.fields)
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def input_document(self) -> Mapping[str, Any]:
        """The JSON Schema of `input_model` as pydantic writes it, which takes a millisecond."""
        return TypeAdapter(self.input_model).json_schema(mode="validation")

    @cached_property
    def output(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.returns)

    @property
    def for_programs(self) -> bool:
        """Whether a program of the model may call it."""
        return self.in_programs and not self.terminal and not self.routed

    @property
    def place(self) -> str:
        """Where it is written: module.function."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def faces(self) -> list["Tool"]:
        """The tool itself and its aliases."""
        return [self, *(_alias(self, each) for each in self.aliases)]


def tool(  # noqa: PLR0913 - one argument for each fact about a tool
    *,
    group: str,
    name: str | None = None,
    terminal: bool = False,
    effect: Effect | str = Effect.EXTERNAL,
    slash: str | None = None,
    aliases: Sequence[Alias] = (),
    toolsets: Sequence[str] = ("worker",),
    approval: bool = False,
    outside: bool = False,
    routed: bool = False,
    in_programs: bool = True,
    available: Callable[[Any], bool] | None = None,
    timeout_s: float | None = None,
    start: Callable[..., Any] | None = None,
    stop: Callable[..., Any] | None = None,
    reconcile: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Make a function a tool. The function itself stays as it is: tests import and call it."""

    def mark(function: F) -> F:
        fields, needs, returns = _signature(function)
        made = Tool(
            name=name or function.__name__,
            description=_description(function),
            group=group,
            function=function,
            fields=fields,
            needs=needs,
            returns=returns,
            terminal=terminal,
            effect=Effect(effect),
            slash=slash,
            aliases=tuple(aliases),
            toolsets=frozenset(toolsets),
            approval=approval,
            outside=outside,
            routed=routed,
            in_programs=in_programs,
            available=available,
            timeout_s=timeout_s,
            start=start,
            stop=stop,
            reconcile=reconcile,
        )
        _check(made)
        setattr(function, _MARK, made)
        return function

    return mark


def tool_of(function: object) -> Tool | None:
    """The tool that a decorated function is, else None."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Tool) else None


def needs_of(function: Callable[..., Any]) -> dict[str, Need]:
    """The capabilities that a function asks for; for `start` and `stop`."""
    hints = get_type_hints(function)
    found = {name: _need(hint) for name, hint in hints.items() if name != "return"}
    return {name: need for name, need in found.items() if need is not None}


def _signature(
    function: Callable[..., Any],
) -> tuple[dict[str, tuple[Any, Any]], dict[str, Need], Any]:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, tuple[Any, Any]] = {}
    needs: dict[str, Need] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise _wrong(function, f"parameter {name!r} has no type")
        need = _need(hints[name])
        if need is not None:
            needs[name] = need
            continue
        if not _described(hints[name]):
            raise _wrong(
                function,
                f"parameter {name!r} is neither a capability nor described: "
                f"write Annotated[…, Field(description=…)]",
            )
        empty = parameter.default is inspect.Parameter.empty
        fields[name] = (hints[name], ... if empty else parameter.default)
    if "return" not in hints:
        raise _wrong(function, "it does not say what it returns")
    return fields, needs, hints["return"]


def _need(hint: Any) -> Need | None:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = [option for option in options if option is not type(None)]
    if len(kinds) != 1 or not isinstance(kinds[0], type):
        return None
    kind = kinds[0]
    if kind is not Clock and not issubclass(kind, Capability):
        return None
    return Need(kind, optional=len(kinds) < len(options))


def _described(hint: Any) -> bool:
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(isinstance(each, FieldInfo) and each.description for each in metadata)


def _description(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise _wrong(function, "it has no docstring: that is what the model and --help show")
    return text


def _check(made: Tool) -> None:
    for name in (made.name, *(alias.name for alias in made.aliases)):
        if not NAME.fullmatch(name):
            raise _wrong(made.function, f"the name {name!r} does not match {NAME.pattern}")
    if made.terminal and made.effect is not Effect.TRANSACTIONAL:
        raise _wrong(made.function, "a terminal tool ends the task, so its effect is transactional")
    if (made.effect is Effect.RECONCILABLE) != (made.reconcile is not None):
        raise _wrong(made.function, "`reconcile` and effect='reconcilable' belong together")
    if made.routed and made.effect is not Effect.IDEMPOTENT:
        raise _wrong(made.function, "the loop goes on with it after a crash: effect='idempotent'")
    for alias in made.aliases:
        unknown = {*alias.hidden, *alias.defaults, *alias.fields} - made.fields.keys()
        if unknown:
            raise _wrong(made.function, f"alias {alias.name!r} names unknown {sorted(unknown)}")


def _alias(made: Tool, alias: Alias) -> Tool:
    fields = {
        name: (alias.fields.get(name, hint), alias.defaults.get(name, default))
        for name, (hint, default) in made.fields.items()
        if name not in alias.hidden
    }
    fixed = {name: alias.defaults[name] for name in alias.hidden if name in alias.defaults}
    return replace(
        made,
        name=alias.name,
        description=alias.description or made.description,
        fields=fields,
        aliases=(),
        alias_of=made.name,
        fixed=fixed,
    )


def _wrong(function: Callable[..., Any], why: str) -> ToolDefinitionError:
    place = f"{inspect.getsourcefile(function)}: {function.__name__}"
    return ToolDefinitionError(f"{place}: {why}", hint="See docs/tools.md.")
