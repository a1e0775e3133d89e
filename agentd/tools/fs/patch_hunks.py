"""Applies the hunks of a patch to one text. Pure.

A hunk fits where its context and its removed lines stand. They are looked for after the hunk before
and after its anchors; white space at the end of a line does not count, everything else does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.domain.errors import ToolError
from agentd.tools.fs.nearest import hint_at_nearest
from agentd.tools.fs.patch_format import Hunk
from agentd.tools.fs.texts import line_end_of, runs_of

_LINES_MOST = 500_000
_LINES_LOOKED_AT_MOST = 10_000_000
_COUNTED_MOST = 100


@dataclass(frozen=True, slots=True)
class _Line:
    """`end`: its line end; empty for a last line without one."""

    text: str
    end: str


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str) -> str:
    """The text with all of them. Raises ToolError: not_found, ambiguous."""
    _check_work(text, hunks, path)
    lines = _split(text)
    texts = [line.text for line in lines]
    usual = line_end_of(text)
    done: list[_Line] = []
    at = 0
    for hunk in hunks:
        start, length = _place(texts, hunk, at, path)
        done += lines[at:start]
        done += _changed(lines[start : start + length], hunk, usual)
        at = start + length
    done += lines[at:]
    return _joined(done, usual, final=not text or text.endswith("\n"))


def _check_work(text: str, hunks: Sequence[Hunk], path: str) -> None:
    """Each hunk and each of its anchors goes through the lines of the file."""
    lines = text.count("\n") + 1
    looks = len(hunks) + sum(len(hunk.anchors) for hunk in hunks)
    if lines > _LINES_MOST or lines * looks > _LINES_LOOKED_AT_MOST:
        raise ToolError(
            "too_large",
            f"{path} has {lines} lines, too many for a patch of {len(hunks)} hunks",
            next_action_hint="edit changes one place; a command can change many.",
        )


def _split(text: str) -> list[_Line]:
    *ended, last = text.split("\n")
    found = [
        _Line(line.removesuffix("\r"), "\r\n" if line.endswith("\r") else "\n") for line in ended
    ]
    return [*found, _Line(last, "")] if last else found


def _joined(lines: list[_Line], usual: str, *, final: bool) -> str:
    """`final`: whether the last line has a line end; all others have one."""
    if not lines:
        return ""
    ended = "".join(line.text + (line.end or usual) for line in lines[:-1])
    last = lines[-1]
    return ended + last.text + ((last.end or usual) if final else "")


def _changed(there: Sequence[_Line], hunk: Hunk, usual: str) -> list[_Line]:
    """What stands in the place of `there`; lines that stay are the file's own."""
    made: list[_Line] = []
    rest = iter(there)
    end = next((line.end for line in there if line.end), usual)
    for sign, text in hunk.lines:
        if sign == "+":
            made.append(_Line(text, end))
        elif (line := next(rest, None)) is not None:
            end = line.end or end
            if sign == " ":
                made.append(line)
    return made


def _place(texts: Sequence[str], hunk: Hunk, start: int, path: str) -> tuple[int, int]:
    """Where the hunk begins, and how many lines of the file it covers."""
    after = _after_anchors(texts, hunk, start, path)
    old = hunk.old
    if not old:
        return (after if hunk.anchors and not hunk.at_end else len(texts)), 0
    for wanted in (old, old[:-1]) if old[-1] == "" and hunk.lines[-1][0] == " " else (old,):
        found = _fits(texts, wanted, after, at_end=hunk.at_end) if wanted else []
        if len(found) > 1 and not hunk.anchors:
            raise _ambiguous(hunk, found, path)
        if found:
            return found[0], len(wanted)
    raise _not_found(texts, hunk, path)


def _after_anchors(texts: Sequence[str], hunk: Hunk, start: int, path: str) -> int:
    first = hunk.old[:1]
    for anchor in hunk.anchors:
        at = _find_anchor(texts, anchor, start)
        if at is not None:
            # Some name the first line of the hunk twice: as its anchor, too.
            start = at if first and first[0].strip() == anchor else at + 1
        elif _find_anchor(texts, anchor, 0) is None:
            raise ToolError(
                "not_found",
                f"line {hunk.number} of the patch: no line of {path} is {anchor!r}; "
                f"nothing was changed",
                next_action_hint=hint_at_nearest("\n".join(texts), anchor, path),
            )
    return start


def _find_anchor(texts: Sequence[str], anchor: str, start: int) -> int | None:
    there = [text.strip() for text in texts[start:]]
    if anchor in there:
        return start + there.index(anchor)
    begun = (at for at, text in enumerate(there, start) if text.startswith(anchor))
    return next(begun, None)


def _fits(texts: Sequence[str], old: Sequence[str], start: int, *, at_end: bool) -> list[int]:
    """Where `old` stands from `start` on: exactly, else but for white space at line ends."""
    first = max(start, len(texts) - len(old)) if at_end else start
    for form in (str, str.rstrip):
        wanted = [form(line) for line in old]
        found = runs_of(wanted, [form(line) for line in texts[first:]], 0, _COUNTED_MOST)
        if found:
            return [first + at for at in found]
    return []


def _many(count: int) -> str:
    return f"{count} or more" if count == _COUNTED_MOST else str(count)


def _ambiguous(hunk: Hunk, found: Sequence[int], path: str) -> ToolError:
    return ToolError(
        "ambiguous",
        f"line {hunk.number} of the patch: the hunk fits {_many(len(found))} times in {path}, "
        f"at lines {', '.join(map(str, found[:20]))}; nothing was changed",
        next_action_hint="Put a line that stands before the right place behind @@, "
        "or add context lines.",
    )


def _not_found(texts: Sequence[str], hunk: Hunk, path: str) -> ToolError:
    earlier = _fits(texts, hunk.old, 0, at_end=False)
    if earlier:
        hint = (
            f"It fits at line {earlier[0]}, before the anchor or the hunk before it, or not at "
            f"the end: put the hunks in the order of the file."
        )
    else:
        hint = hint_at_nearest("\n".join(texts), "\n".join(hunk.old), path)
    return ToolError(
        "not_found",
        f"line {hunk.number} of the patch: the hunk's lines do not stand in {path}; "
        f"nothing was changed",
        next_action_hint=hint,
    )
