"""What a server lists, as far as it can be used: filtered by name, checked, bad tools set aside.

A schema that a provider refuses would fail every request, so such a tool is left out with its
reason, and the others work.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from mcp_types import Tool as Listed

from agentd.connectors.names import exported
from agentd.connectors.specs import ServerSpec
from agentd.domain.jsons import is_array, is_object
from agentd.toolkit.definition import Effect
from agentd.toolkit.given import GivenSchema, check_schema
from agentd.toolkit.schema import normalise

_SCHEMA_MOST_CHARS = 100_000
_CHECKS_S = 10.0  # for all schemas of a server; the largest takes two
_NODES_MOST = 10_000  # of a schema whose references are written out
_DESCRIPTION_MOST_CHARS = 8_000
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server. `name`: here; `original`: there. `shown_chars`: for a model."""

    server: str
    name: str
    original: str
    description: str
    input: GivenSchema
    output: GivenSchema | None
    effect: Effect
    shown_chars: int = 0

    @property
    def summary(self) -> str:
        return self.description.strip().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Catalog:
    """`aside`: tools that can not be used, with the reason."""

    tools: tuple[RemoteTool, ...] = ()
    aside: tuple[tuple[str, str], ...] = ()

    def find(self, name: str) -> RemoteTool | None:
        """By its name there or here."""
        by_original = (tool for tool in self.tools if tool.original == name)
        return next(by_original, None) or next(
            (tool for tool in self.tools if tool.name == name), None
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server said. `outputs`: schemas of answers; `misshapen`: tools of no legal shape."""

    tools: Sequence[Listed]
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    misshapen: Mapping[str, str] = field(default_factory=dict[str, str])


def make_catalog(spec: ServerSpec, prefix: str, listing: Listing) -> Catalog:
    """Blocks for as long as it takes to look at every schema; for a thread."""
    wanted: dict[str, Listed] = {}
    for tool in listing.tools:
        if _is_wanted(spec, tool.name):
            wanted.setdefault(tool.name, tool)
    names = exported(prefix, wanted)
    ends_at = time.monotonic() + _CHECKS_S
    tools: list[RemoteTool] = []
    aside = list(listing.misshapen.items())
    for name in sorted(wanted):
        try:
            late = time.monotonic() > ends_at
            reason = "the others took too long to be checked" if late else _why_not(wanted[name])
        except RecursionError:
            reason = "its input schema is nested too deeply"
        except Exception as error:  # noqa: BLE001 - only this tool is lost
            reason = f"its input schema can not be read: {type(error).__name__}"
        if reason is None:
            output = listing.outputs.get(name)
            tools.append(_remote(spec.name, names[name], wanted[name], output))
        else:
            aside.append((name, reason))
    return Catalog(tuple(tools), tuple(aside))


def _is_wanted(spec: ServerSpec, name: str) -> bool:
    if any(fnmatchcase(name, each) for each in spec.deny):
        return False
    return not spec.allow or any(fnmatchcase(name, each) for each in spec.allow)


def _remote(server: str, name: str, tool: Listed, output: Mapping[str, Any] | None) -> RemoteTool:
    said = tool.description or tool.title or f"{tool.name} of the MCP server {server}."
    description = said[:_DESCRIPTION_MOST_CHARS]
    schema = json.dumps(normalise(tool.input_schema), ensure_ascii=False)
    return RemoteTool(
        server=server,
        name=name,
        original=tool.name,
        description=description,
        input=GivenSchema(tool.input_schema),
        output=None if output is None else GivenSchema(output),
        effect=_effect(tool),
        shown_chars=len(description) + len(schema),
    )


def _effect(tool: Listed) -> Effect:
    """What a crash means; only what the server says itself makes it less than `external`."""
    hints = tool.annotations
    if hints is None:
        return Effect.EXTERNAL
    if hints.read_only_hint:
        return Effect.READ
    return Effect.IDEMPOTENT if hints.idempotent_hint else Effect.EXTERNAL


def _why_not(tool: Listed) -> str | None:
    """Why it can not be used, or None."""
    schema = tool.input_schema
    if len(json.dumps(schema)) > _SCHEMA_MOST_CHARS:
        return f"its input schema has more than {_SCHEMA_MOST_CHARS} characters"
    if schema.get("type", "object") != "object":
        return f"its input is no object but {schema.get('type')!r}"
    if (problem := check_schema(schema)) is not None:
        return f"its input schema is invalid: {problem}"
    if _nodes(schema, schema, ()) > _NODES_MOST:
        return "its input schema is too large once its references are written out"
    for key in _property_names(schema):
        if not _PROPERTY.fullmatch(key):
            return f"the models take no parameter named {key!r}"
    return None


def _property_names(schema: Mapping[str, Any]) -> list[str]:
    found = list(schema.get("properties", {}))
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(key, ()):
            if is_object(branch):
                found += branch.get("properties", {})
    return found


def _nodes(node: Any, root: Mapping[str, Any], inside: tuple[str, ...], so_far: int = 0) -> int:
    """How many values `node` has with its references written out; counts no further than needed."""
    if so_far > _NODES_MOST:
        return so_far
    if is_object(node):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in inside:
            target = pointed(root, reference)
            so_far = _nodes(target, root, (*inside, reference), so_far + 1)
        children = [value for key, value in node.items() if key not in ("$defs", "definitions")]
    elif is_array(node):
        children = node
    else:
        return so_far + 1
    for child in children:
        so_far = _nodes(child, root, inside, so_far + 1)
    return so_far


def pointed(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference inside the document points to; None for any other."""
    if not reference.startswith("#"):
        return None
    here: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if is_object(here) else None
    return here
