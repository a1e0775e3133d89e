"""What ripgrep prints about matching lines, and what of it is shown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentd.tools.fs.ripgrep import plain

_LINE = re.compile(r"(?P<path>[^\0]+)\0(?P<number>\d+)(?P<kind>[:-])(?P<text>.*)", re.DOTALL)
_BREAK = "--"


@dataclass(frozen=True, slots=True)
class Line:
    """`number`: from 0. `matches`: False for one that is only shown beside a match.

    `follows`: it comes right after the line before it.
    """

    path: str
    number: int
    text: str
    matches: bool
    follows: bool


def lines_of(output: str, order: Sequence[str], *, most: int) -> list[Line]:
    """The lines by file in `order`, up to the last that matches of the first `most`."""
    by_file: dict[str, list[Line]] = {path: [] for path in order}
    before: Line | None = None
    for printed in output.split("\n"):
        if (found := _LINE.fullmatch(printed)) is None:
            continue
        path, number = plain(found["path"]), int(found["number"]) - 1
        follows = before is not None and (before.path, before.number) == (path, number - 1)
        text = found["text"].removesuffix("\r")
        before = Line(path, number, text, found["kind"] == ":", follows)
        if path in by_file:
            by_file[path].append(before)
    return list(_cut([line for lines in by_file.values() for line in lines], most))


def shown_lines(lines: Sequence[Line]) -> list[str]:
    """path:line:text; path-line-text for what only stands beside; -- where lines are left out."""
    apart = any(not line.matches for line in lines)
    shown: list[str] = []
    for line in lines:
        if apart and shown and not line.follows:
            shown.append(_BREAK)
        sign = ":" if line.matches else "-"
        shown.append(f"{line.path}{sign}{line.number}{sign}{line.text}")
    return shown


def _cut(lines: Sequence[Line], most: int) -> Iterator[Line]:
    for line in lines:
        if line.matches:
            if most == 0:
                return
            most -= 1
        yield line
