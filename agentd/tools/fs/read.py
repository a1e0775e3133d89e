"""read: text of a file, a page at a time; a picture as a picture."""

import base64
import json
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Alias, Effect, tool
from agentd.tools.fs.docx import docx_text
from agentd.tools.fs.pages import Lines, as_utf8, page
from agentd.tools.fs.pdf import is_pdf, pdf_text
from agentd.tools.fs.pictures import PICTURE_MOST_BYTES, check_picture, media_type_of

_PAGE_BYTES = 50 * 1024  # seed 002
_PAGE_MOST_BYTES = 512 * 1024  # seed 002
_LOOK_BYTES = 16
_ALL_LINES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """`first`: the number of the first line shown. `more`: the file goes on after the last one.

    `media_type` and `picture`: of a file that is shown as a picture; it has no lines.
    """

    content: str
    path: str
    first: int
    lines: int
    more: bool
    media_type: str | None = None
    picture: Annotated[bytes, Field(exclude=True, repr=False)] = b""

    def blocks(self) -> list[dict[str, Any]] | None:
        """What the model gets instead of `content`."""
        if not self.picture:
            return None
        data = base64.b64encode(self.picture).decode()
        source = {"type": "base64", "media_type": self.media_type, "data": data}
        return [{"type": "text", "text": self.content}, {"type": "image", "source": source}]

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
            description="Read a whole text file, PDF or Word document (.docx) of the workspace.",
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
    commands: Commands | None = None,
) -> Page:
    """Read a file of the workspace, a page at a time: text, PDF, Word document (.docx), picture.

    Lines are numbered from 0, as offset counts them. A page that is not the last ends with the call
    for the next one. A picture (PNG, JPEG, GIF, WebP) is shown as a picture.
    """
    page_bytes = _PAGE_BYTES if limit is None else _PAGE_MOST_BYTES
    with workspace.open(path) as file:
        start = file.read(_LOOK_BYTES)
        file.seek(0)
        if media_type := media_type_of(start):
            return _picture(file, path, media_type)
        text = _text(file, start, path, commands)
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


def _text(file: BinaryIO, start: bytes, path: str, commands: Commands | None) -> BinaryIO:
    if is_pdf(start):
        return pdf_text(file, path, commands)
    return (
        docx_text(file, path, commands) if path.lower().endswith(".docx") else as_utf8(file, path)
    )


def _picture(file: BinaryIO, path: str, media_type: str) -> Page:
    data = file.read(PICTURE_MOST_BYTES + 1)
    width, height = check_picture(data, media_type, path)
    told = f"{path} is a picture: {media_type}, {width} x {height} pixels, {len(data)} bytes."
    return Page(told, path, 0, 0, False, media_type, data)


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
