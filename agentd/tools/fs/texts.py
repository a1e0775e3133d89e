"""A file's bytes as text that can be edited, and back, with all that is not text kept.

Line ends, the byte order mark, UTF-16 and bytes that are no UTF-8 come out as they went in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.domain.errors import ToolError

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Text:
    """`text`: with the line ends of the file. `bom`: what stood in front of it."""

    text: str
    bom: bytes = b""
    encoding: str = "utf-8"

    def encode(self, text: str) -> bytes:
        """`text` in the file's form. Raises ToolError for what can not be written."""
        try:
            return self.bom + text.encode(self.encoding, _errors(self.encoding))
        except UnicodeEncodeError as error:
            raise ToolError(
                "invalid_arguments", f"the new text can not be written as {self.encoding}: {error}"
            ) from error


def decode(data: bytes, path: str) -> Text:
    """Raises ToolError for what is no text."""
    if encoding := _UTF16.get(data[:2]):
        text = data[2:].decode(encoding, "replace")
        if text.encode(encoding, "replace") == data[2:]:
            return Text(text, data[:2], encoding)
    if b"\0" in data:
        raise ToolError(
            "binary_file",
            f"{path} holds bytes that are no text, so it can not be edited",
            next_action_hint="write replaces a whole file.",
        )
    bom = _UTF8_BOM if data.startswith(_UTF8_BOM) else b""
    return Text(data[len(bom) :].decode("utf-8", _errors("utf-8")), bom)


def runs_of(wanted: Sequence[str], lines: Sequence[str], start: int, most: int) -> list[int]:
    """Where the lines `wanted` stand in `lines` from `start` on, the first `most` places.

    As one search for a text: comparing at every line takes quadratic time where all are alike.
    """
    text, piece = ("\n".join(["", *each, ""]) for each in (lines[start:], wanted))
    found: list[int] = []
    line, before, at = start, 0, text.find(piece)
    while at >= 0 and len(found) < most:
        line += text.count("\n", before, at)
        found.append(line)
        before, at = at, text.find(piece, at + 1)
    return found


def line_end_of(text: str) -> str:
    """The line end that most lines of `text` have."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def _errors(encoding: str) -> str:
    return "surrogateescape" if encoding == "utf-8" else "strict"
