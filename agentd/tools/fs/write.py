"""write: a whole file at once."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Alias, Effect, tool


@dataclass(frozen=True, slots=True)
class FileWritten:
    """`size`: bytes."""

    message: str
    path: str
    size: int
    created: bool


@tool(group="fs", effect=Effect.IDEMPOTENT, aliases=[Alias("write_file")])
def write(
    workspace: Workspace,
    path: Annotated[str, Field(min_length=1, description="The file, from the workspace.")],
    content: Annotated[str, Field(description="Everything that the file is to hold.")],
) -> FileWritten:
    """Write a file of the workspace; what it held before is replaced, missing folders are made."""
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("invalid_arguments", f"content can not be written: {error}") from error
    written = workspace.write(path, data)
    what = "Created" if written.created else "Replaced"
    return FileWritten(
        f"{what} {written.path} ({written.size} bytes).",
        written.path,
        written.size,
        written.created,
    )
