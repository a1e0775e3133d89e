"""The edit of one text: a piece of it that stands there exactly once becomes another.

Both pieces may come with plain line ends whatever the file has; what is not replaced stays as it
is, byte for byte.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agentd.domain.errors import ToolError
from agentd.sandbox.changes import FILE_MOST_BYTES
from agentd.tools.fs.nearest import hint_at_nearest
from agentd.tools.fs.texts import line_end_of

_NAMED_MOST = 20
_COUNTED_MOST = 1000
_PLACES_MOST = 100_000
_CHARS_MOST = 2 * FILE_MOST_BYTES


@dataclass(frozen=True, slots=True)
class Replaced:
    """`lines`: the lines that the replaced pieces began on, from 0 as read counts them."""

    text: str
    lines: Sequence[int]


def replace(text: str, old: str, new: str, *, every: bool, path: str) -> Replaced:
    """Raises ToolError: not_found, ambiguous, nothing_to_do."""
    if not old:
        raise ToolError(
            "invalid_arguments",
            "old_text is empty: it must be the text that is to be replaced",
            next_action_hint="write makes or replaces a whole file.",
        )
    literal = "\r\n" in old
    seen = _Seen(text, joined=not literal)
    found = seen.places(old, step=len(old) if every else 1)
    starts = list(islice(found, _PLACES_MOST + 1 if every else _COUNTED_MOST))
    if not starts:
        raise ToolError(
            "not_found",
            f"old_text does not occur in {path}; nothing was changed",
            next_action_hint=hint_at_nearest(text, old, path),
        )
    lines = seen.lines(starts)
    if len(starts) > 1 and not every:
        raise _ambiguous(lines, path)
    _check_size(text, old, new, len(starts), path)
    changed = "".join(_pieces(seen, starts, old, new if literal else new.replace("\r\n", "\n")))
    if changed == text:
        raise ToolError(
            "nothing_to_do", f"new_text is what stands in {path} already; nothing was changed"
        )
    return Replaced(changed, lines)


class _Seen:
    """A text as the search sees it, and the way back. `joined`: each CR LF is one line end."""

    def __init__(self, text: str, *, joined: bool) -> None:
        self.raw = text
        self.joined = joined
        self.plain = text.replace("\r\n", "\n") if joined else text
        # Where in the plain text a CR is missing, in order.
        self._gone = (
            [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
            if joined
            else []
        )
        self._usual = line_end_of(text)
        self._looked_from, self._next_end = 0, -1

    def places(self, piece: str, *, step: int) -> Iterator[int]:
        """Where `piece` begins in the plain text; with a step of its length they never overlap."""
        at = self.plain.find(piece)
        while at >= 0:
            yield at
            at = self.plain.find(piece, at + step)

    def lines(self, places: Sequence[int]) -> list[int]:
        """The line of each place, from 0."""
        found: list[int] = []
        line, before = 0, 0
        for place in places:
            line += self.plain.count("\n", before, place)
            before = place
            found.append(line)
        return found

    def raw_place(self, at: int) -> int:
        """Where the raw text has what the plain text has at `at`."""
        return at + bisect_right(self._gone, at - 1)

    def line_end_near(self, start: int) -> str:
        """The line end in the piece, else of its line, else of most lines."""
        if not self._looked_from <= start <= self._next_end:
            at = self.plain.find("\n", start)
            self._looked_from, self._next_end = start, len(self.plain) if at < 0 else at
        if self._next_end == len(self.plain):
            return self._usual
        raw = self.raw_place(self._next_end)
        return "\r\n" if self.raw.startswith("\r\n", raw) else "\n"


def _pieces(seen: _Seen, starts: Sequence[int], old: str, new: str) -> Iterator[str]:
    kept = 0
    for start in starts:
        end = start + len(old)
        yield seen.raw[kept : seen.raw_place(start)]
        plain = not seen.joined or "\n" not in new
        yield new if plain else new.replace("\n", seen.line_end_near(start))
        kept = seen.raw_place(end)
    yield seen.raw[kept:]


def _check_size(text: str, old: str, new: str, times: int, path: str) -> None:
    if times > _PLACES_MOST:
        raise ToolError("too_large", f"old_text occurs more than {_PLACES_MOST} times in {path}")
    if len(text) + times * (len(new) + new.count("\n") - len(old)) > _CHARS_MOST:
        raise ToolError("too_large", f"{path} would have more than {_CHARS_MOST} characters")


def _many(count: int) -> str:
    return f"{count} or more" if count == _COUNTED_MOST else str(count)


def _ambiguous(lines: Sequence[int], path: str) -> ToolError:
    named = ", ".join(map(str, lines[:_NAMED_MOST]))
    more = f" and {len(lines) - _NAMED_MOST} more" if len(lines) > _NAMED_MOST else ""
    return ToolError(
        "ambiguous",
        f"old_text occurs {_many(len(lines))} times in {path}, at lines {named}{more}; "
        f"nothing was changed",
        next_action_hint="Add lines before or after it until it is the only one, "
        "or set replace_all.",
    )
