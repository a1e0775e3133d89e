"""One page of a text: whole lines, at most so many and so many bytes of them."""

import io
from dataclasses import dataclass
from typing import BinaryIO

from agentd.domain.errors import ToolError

_LOOK_BYTES = 8192
_SKIP_BYTES = 1 << 20
_UTF16_MOST_BYTES = 20 * 1024 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Lines:
    """`lines`: without their ends. `left_bytes`: what the text holds after them.

    `cut_bytes`: what is missing of the one line, when that alone is longer than a page. `broken`:
    how many bytes were no UTF-8 and stand as U+FFFD.
    """

    lines: list[str]
    left_bytes: int
    cut_bytes: int
    broken: int


def as_utf8(file: BinaryIO, path: str) -> BinaryIO:
    """The file from its first character on, in UTF-8. Raises ToolError for what is no text."""
    start = file.read(_LOOK_BYTES)
    if start.startswith(_UTF16_BOMS):
        whole = start + file.read(_UTF16_MOST_BYTES)
        return io.BytesIO(whole.decode("utf-16", errors="replace").encode())
    if b"\0" in start:
        size = file.seek(0, io.SEEK_END)
        raise ToolError(
            "binary_file",
            f"{path} holds {size} bytes that are no text",
            next_action_hint="read shows text, PDF, .docx and pictures.",
        )
    file.seek(len(_UTF8_BOM) if start.startswith(_UTF8_BOM) else 0)
    return file


def page(file: BinaryIO, *, offset: int, limit: int | None, page_bytes: int) -> Lines | None:
    """From line `offset` (the first is 0) on; None when the text has ended before that line."""
    if not _skip(file, offset):
        return None
    taken: list[bytes] = []
    room, cut = page_bytes, 0
    while limit is None or len(taken) < limit:
        before = file.tell()
        line = file.readline(room + 1)
        if len(line) > room:
            if taken:
                file.seek(before)
            else:
                taken.append(line[:room])
                cut = len(line) - room + _rest_of_line(file, line)
            break
        if not line:
            break
        taken.append(line)
        room -= len(line)
    left = file.seek(0, io.SEEK_CUR)
    left = file.seek(0, io.SEEK_END) - left
    texts = [line.rstrip(b"\r\n").decode(errors="replace") for line in taken]
    broken = sum(text.count("\ufffd") for text in texts)
    real = sum(line.count("\ufffd".encode()) for line in taken)
    return Lines(texts, left, cut, max(0, broken - real))


def _skip(file: BinaryIO, lines: int) -> bool:
    """False when the text ends before it has that many lines. Reads once, a block at a time."""
    while lines:
        block = file.read(_SKIP_BYTES)
        if not block:
            return False
        ends = block.count(b"\n")
        if ends >= lines:
            at = -1
            for _ in range(lines):
                at = block.index(b"\n", at + 1)
            file.seek(at + 1 - len(block), io.SEEK_CUR)
            return True
        lines -= ends
    return True


def _rest_of_line(file: BinaryIO, line: bytes) -> int:
    """Go to the end of the line that `line` began; the bytes of it that were passed."""
    passed = 0
    while not line.endswith(b"\n"):
        line = file.readline(_SKIP_BYTES)
        if not line:
            break
        passed += len(line)
    return passed - line.endswith(b"\n")
