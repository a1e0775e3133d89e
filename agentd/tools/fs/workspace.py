"""workspace: the files of the workspace by one tool with actions."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal, assert_never

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Effect, tool
from agentd.tools.fs.ls import ls
from agentd.tools.fs.read import read
from agentd.tools.fs.write import write

Action = Literal["read", "write", "list", "delete"]


@dataclass(frozen=True, slots=True)
class WorkspaceResult:
    """`content`: of the file that was read, or the folder's entries, or what was done."""

    content: str
    action: Action
    path: str


@tool(
    group="fs",
    effect=Effect.IDEMPOTENT,
    slash=r"/workspace\s+(?P<action>read|write|list|delete)"
    r"(?:\s+(?P<path>\S+))?(?:\s+\"?(?P<content>(?s:.+?))\"?)?\s*",
)
def workspace(
    workspace: Workspace,
    action: Annotated[Action, Field(description="What to do.")],
    path: Annotated[
        str | None,
        Field(min_length=1, description="Relative to the workspace; list needs none."),
    ] = None,
    content: Annotated[
        str | None, Field(description="For write: everything that the file is to hold.")
    ] = None,
    commands: Commands | None = None,
) -> WorkspaceResult:
    """Read, write, list or delete files of the workspace; paths are relative to it."""
    where = _relative(path or ("." if action == "list" else None), action)
    match action:
        case "read":
            said = read(workspace, where, numbered=False, commands=commands).content
        case "write":
            said = write(workspace, where, _needed("content", content, action)).message
        case "list":
            said = ls(workspace, where).content
        case "delete":
            said = _delete(workspace, where)
        case _:
            assert_never(action)
    return WorkspaceResult(said, action, where)


def _delete(workspace: Workspace, path: str) -> str:
    """A call that a crash cut off is made again, so nothing there is no error."""
    try:
        return f"Deleted {workspace.delete(path)}."
    except ToolError as error:
        if error.error_type != "not_found":
            raise
        hint = error.next_action_hint or ""
        return f"There is no {path}: it was deleted before, or never was. {hint}".rstrip()


def _relative(path: str | None, action: Action) -> str:
    """Raises ToolError for what leads out of the workspace, even where links would allow it."""
    parts = PurePosixPath(_needed("path", path, action))
    if parts.is_absolute() or ".." in parts.parts:
        raise ToolError(
            "outside_workspace",
            f"{path} is no path in the workspace: it must be relative, without ..",
            next_action_hint="workspace(action='list') shows what is there.",
        )
    return str(parts)


def _needed(name: str, value: str | None, action: Action) -> str:
    if value is None:
        raise ToolError("invalid_arguments", f"workspace: {action} needs {name}")
    return value
