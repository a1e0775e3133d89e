"""What a text has instead of the lines that were looked for: so that the next try can be right."""

import difflib
import re
from collections.abc import Sequence

from agentd.tools.fs.texts import runs_of

_LINES_MOST = 5000  # that are compared: a miss must not take seconds
_COMPARED_MOST = 100  # of those letter by letter: one can take 10 ms
_SHOWN_LINES = 12
_SHOWN_CHARS = 200
_ALIKE = 0.6
_NUMBERED = re.compile(r"\s*\d+\t")


def hint_at_nearest(text: str, wanted: str, path: str) -> str:
    """Why `wanted` may be missing in `text`, with the lines that come nearest."""
    plain = text.replace("\r\n", "\n")
    lines = wanted.replace("\r\n", "\n").split("\n")
    if "\r\n" in wanted and "\n".join(lines) in plain:
        return "It occurs with other line ends: write plain \\n, the file's own are kept."
    if all(_NUMBERED.match(line) for line in lines if line):
        return "Leave out the line numbers that read puts in front of each line."
    if (cut := "\n".join(lines).strip("\n")) and cut in plain:
        return "It occurs without the line ends at its start or end: leave them out."
    there = plain.split("\n")
    if (at := _same_but_space(there, lines)) is not None:
        return (
            f"These lines of {path} differ only in white space:\n{_numbered(there, at, len(lines))}"
        )
    if (at := _nearest(there, lines)) is not None:
        return f"Nearest in {path} is:\n{_numbered(there, at, len(lines))}"
    return f"read {path} shows what is there now."


def _same_but_space(there: Sequence[str], lines: Sequence[str]) -> int | None:
    squeezed = ["".join(line.split()) for line in there]
    wanted = ["".join(line.split()) for line in lines]
    found = runs_of(wanted, squeezed, 0, 1) if any(wanted) else []
    return found[0] if found else None


def _nearest(there: Sequence[str], lines: Sequence[str]) -> int | None:
    """Where the window begins that holds the line most like the longest of those wanted."""
    anchor = max(range(len(lines)), key=lambda number: len(lines[number].strip()))
    known = [line.strip()[:_SHOWN_CHARS] for line in there[:_LINES_MOST]]
    matcher = difflib.SequenceMatcher(b=lines[anchor].strip()[:_SHOWN_CHARS])
    best, best_at, left = _ALIKE, None, _COMPARED_MOST
    for at, line in enumerate(known):
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and left:
            left -= 1
            if (ratio := matcher.ratio()) > best:
                best, best_at = ratio, at
    return None if best_at is None else max(0, best_at - anchor)


def _numbered(there: Sequence[str], at: int, count: int) -> str:
    shown = there[at : at + min(count, _SHOWN_LINES)]
    width = len(str(at + len(shown)))
    return "\n".join(
        f"{number:>{width}}\t{line[:_SHOWN_CHARS]}" for number, line in enumerate(shown, at)
    )
