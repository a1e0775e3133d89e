"""The envelope of apply_patch as data: which files it adds, updates, moves and deletes.

*** Begin Patch / *** Add File: p / *** Update File: p / *** Move to: q / @@ context / ' ', '-' and
'+' lines / *** End of File / *** Delete File: p / *** End Patch
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentd.domain.errors import ToolError

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_EOF = "*** End of File"
# What models wrap a patch into: a shell's heredoc, a fence.
_OPENING = re.compile(r"(\S+ )*<<-?\s*(['\"]?)\w+\2|`{3,}\w*|apply_patch")
_CLOSING = re.compile(r"\w+|`{3,}")
_UNIFIED = re.compile(r"^-\d+(,\d+)? \+\d+(,\d+)?(\s*@@\s*)?")


@dataclass(slots=True)
class Hunk:
    """`anchors`: lines that stand before it, from the outside in. `lines`: sign and text.

    `at_end`: its last line is the last of the file. `number`: its line in the patch, from 1.
    """

    number: int
    anchors: list[str] = field(default_factory=list[str])
    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    path: str
    move_to: str | None
    hunks: Sequence[Hunk]


@dataclass(frozen=True, slots=True)
class DeleteFile:
    path: str


FileChange = AddFile | UpdateFile | DeleteFile


def parse_patch(patch: str) -> list[FileChange]:
    """Raises ToolError(invalid_patch) that names the line."""
    return _Parser(patch).changes()


class _Parser:
    def __init__(self, patch: str) -> None:
        self._lines = [line.removesuffix("\r") for line in patch.split("\n")]
        self._at = 0
        # For each line: the first one from there on that is not empty.
        self._filled_from = list(range(len(self._lines) + 1))
        for at in reversed(range(len(self._lines))):
            if not self._lines[at].strip():
                self._filled_from[at] = self._filled_from[at + 1]

    def changes(self) -> list[FileChange]:
        self._open()
        found: list[FileChange] = []
        while (line := self._line()) != _END:
            if not line.strip():
                self._at += 1
                continue
            header = _FILE.fullmatch(line)
            if header is None:
                raise self._wrong(
                    f"expected *** Add File:, *** Update File:, *** Delete File: or {_END}"
                )
            if not (path := header[2].strip()):
                raise self._wrong("the path is missing")
            self._at += 1
            found.append(self._change(header[1], path))
        self._close()
        if not found:
            raise self._wrong("the patch changes no file")
        return found

    def _change(self, action: str, path: str) -> FileChange:
        match action:
            case "Add":
                return AddFile(path, self._added())
            case "Delete":
                return DeleteFile(path)
            case _:
                return self._updated(path)

    def _added(self) -> str:
        lines: list[str] = []
        while not (line := self._line()).startswith("***"):
            if line.startswith("+"):
                lines.append(line[1:])
            elif line.strip() or not self._only_blank_before_header():
                raise self._wrong("every line of an added file begins with +")
            self._at += 1
        return "".join(f"{line}\n" for line in lines)

    def _updated(self, path: str) -> UpdateFile:
        begun = self._at
        move_to = None
        if moved := _MOVE.fullmatch(self._line()):
            move_to = moved[1].strip()
            self._at += 1
        hunks: list[Hunk] = []
        while not _is_header(self._line()) and not self._only_blank_before_header():
            hunks.append(self._hunk())
        if not hunks and move_to is None:
            self._at = begun
            raise self._wrong(f"nothing is changed in {path}: @@ and lines must follow")
        return UpdateFile(path, move_to, hunks)

    def _hunk(self) -> Hunk:
        hunk = Hunk(self._at + 1)
        while (line := self._line()).startswith("@@"):
            if context := _context(line):
                hunk.anchors.append(context)
            self._at += 1
        while not (line := self._line()).startswith("@@") and not _is_header(line):
            if line == _EOF:
                hunk.at_end = True
                self._at += 1
                break
            if self._only_blank_before_header():
                break
            if line[:1] not in ("", " ", "+", "-"):
                raise self._wrong("a line of a hunk begins with a space, + or -")
            hunk.lines.append((line[:1] or " ", line[1:]))
            self._at += 1
        if not hunk.lines:
            raise self._wrong("the hunk has no lines")
        return hunk

    def _only_blank_before_header(self) -> bool:
        """Whether nothing but empty lines stands between here and the next file."""
        if self._lines[self._at] != "":
            return False
        at = self._filled_from[self._at]
        return at < len(self._lines) and _is_header(self._lines[at])

    def _open(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            if line == _BEGIN:
                self._at += 1
                return
            if line and not _OPENING.fullmatch(line):
                break
            self._at += 1
        raise self._wrong(f"a patch begins with {_BEGIN}")

    def _close(self) -> None:
        for number in range(self._at + 1, len(self._lines)):
            line = self._lines[number].strip()
            if line and not _CLOSING.fullmatch(line):
                self._at = number
                raise self._wrong(f"nothing may follow {_END}")

    def _line(self) -> str:
        if self._at >= len(self._lines):
            raise self._wrong(f"the patch ends without {_END}")
        line = self._lines[self._at]
        return _END if line.rstrip() == _END else line

    def _wrong(self, why: str) -> ToolError:
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        shown = f" (it is {line[:80]!r})" if line else ""
        return ToolError(
            "invalid_patch",
            f"line {self._at + 1} of the patch: {why}{shown}; nothing was changed",
            next_action_hint=_EXAMPLE,
        )


def _is_header(line: str) -> bool:
    return line.rstrip() == _END or _FILE.fullmatch(line) is not None


def _context(line: str) -> str:
    """What an @@ line says, without the numbers that a unified diff has there."""
    context = line.removeprefix("@@").strip()
    if context.endswith("@@"):
        context = context.removesuffix("@@").strip()
    return _UNIFIED.sub("", context)


_EXAMPLE = """\
A patch looks like this:
*** Begin Patch
*** Update File: a.py
@@ def greet():
-    print("hi")
+    print("hello")
*** End Patch"""
