"""ls: what is in a folder."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.sandbox.workspace import ENTRIES_MOST, Entry, Workspace
from agentd.toolkit.definition import Effect, tool

_MOST = 1000


@dataclass(frozen=True, slots=True)
class Listing:
    """`more`: how many entries there are beyond those in `entries`."""

    content: str
    entries: list[Entry]
    more: int


@tool(group="fs", effect=Effect.READ, toolsets=("worker", "subagent"))
def ls(
    workspace: Workspace,
    path: Annotated[
        str, Field(min_length=1, description="The folder, from the workspace; . is all of it.")
    ],
    depth: Annotated[int, Field(ge=1, le=10, description="How many levels deep.")] = 1,
) -> Listing:
    """List a folder of the workspace: each entry with its type (file, dir) and size in bytes."""
    found = workspace.list(path, depth=depth)
    shown, more = found[:_MOST], max(0, len(found) - _MOST)
    width = max((len(str(entry.size)) for entry in shown), default=0)
    lines = [f"{entry.type:<5} {entry.size:>{width}} {entry.path}" for entry in shown]
    if more:
        least = "at least " if len(found) == ENTRIES_MOST else ""
        lines.append(
            f"[{least}{more} more entries are not shown; list a folder below, or less depth]"
        )
    return Listing("\n".join(lines) or "(the folder is empty)", shown, more)
