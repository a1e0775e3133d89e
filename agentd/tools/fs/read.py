"""read: text of a file, a page at a time."""

import json
from dataclasses import dataclass
from typing import Annotated, BinaryIO

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Alias, Effect, tool
from agentd.tools.fs.docx import docx_text
from agentd.tools.fs.pages import Lines, as_utf8, page

_PAGE_BYTES = 50 * 1024  # seed 002
_PAGE_MOST_BYTES = 512 * 1024  # seed 002
_ALL_LINES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """`first`: the number of the first line shown. `more`: the file goes on after the last one."""

    content: str
    path: str
    first: int
    lines: int
    more: bool

    def next_call(self, shown: str) -> str:
        """How to go on after the start of `content` that is `shown`."""
        return _call(self.path, self.first + shown.count("\n"))


@tool(
    group="fs",
    effect=Effect.READ,
    toolsets=("worker", "subagent"),
    aliases=[
        Alias(
            "read_file",
            defaults={"offset": 0, "limit": _ALL_LINES, "numbered": False},
            hidden=("offset", "limit", "numbered"),
            description="Read a whole text file or Word document (.docx) of the workspace.",
        )
    ],
)
def read(
    workspace: Workspace,
    path: Annotated[str, Field(min_length=1, description="The file, from the workspace.")],
    offset: Annotated[int, Field(ge=0, description="The line to start at; the first is 0.")] = 0,
    limit: Annotated[
        int | None, Field(ge=1, description="Lines at the most; without it a page of 50 KB.")
    ] = None,
    numbered: Annotated[
        bool, Field(description="With the number in front of each line, as offset counts.")
    ] = True,
) -> Page:
    """Read a text file or Word document (.docx) of the workspace, a page at a time.

    Lines are numbered from 0, as offset counts them. A page that is not the last ends with the call
    for the next one.
    """
    page_bytes = _PAGE_BYTES if limit is None else _PAGE_MOST_BYTES
    with workspace.open(path) as file:
        text = _text(file, path)
        found = page(text, offset=offset, limit=limit, page_bytes=page_bytes)
    if found is None or (not found.lines and offset):
        raise ToolError(
            "past_end",
            f"{path} has no line {offset}",
            next_action_hint=f"{_call(path, 0)} starts at its first line.",
        )
    width = len(str(offset + len(found.lines)))
    lines = [
        f"{number:>{width}}\t{line}" if numbered else line
        for number, line in enumerate(found.lines, start=offset)
    ]
    notices = _notices(found, path, offset)
    content = "\n".join([*lines, *notices]) if lines else "(the file is empty)"
    return Page(content, path, offset, len(lines), found.left_bytes > 0)


def _text(file: BinaryIO, path: str) -> BinaryIO:
    return docx_text(file, path) if path.lower().endswith(".docx") else as_utf8(file, path)


def _notices(found: Lines, path: str, offset: int) -> list[str]:
    notices: list[str] = []
    if found.broken:
        notices.append(f"[bytes that are no UTF-8 are shown as \ufffd ({found.broken} of them)]")
    if found.cut_bytes:
        notices.append(
            f"[line {offset} is longer than a page: {found.cut_bytes} bytes of it are missing. "
            f"{_call(path, offset, limit=1)} shows up to {_PAGE_MOST_BYTES} bytes of it]"
        )
    if found.left_bytes:
        after = _call(path, offset + len(found.lines))
        notices.append(f"[{found.left_bytes} bytes follow. Go on with {after}]")
    return notices


def _call(path: str, offset: int, limit: int | None = None) -> str:
    more = f", limit={limit}" if limit else ""
    return f"read(path={json.dumps(path, ensure_ascii=False)}, offset={offset}{more})"
