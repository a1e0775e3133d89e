r"""Glob patterns as regular expressions that can not be made slow.

`*` and `?` stay within a name, `**` is any number of folders, [a-z], {a,b}, \ before a character
that is meant itself. A pattern without a slash is about names in any folder. Braces are spelled
out, and each star takes the first place where what follows it fits, so nothing is tried again.
"""

import re

from agentd.domain.errors import ToolError

_SPELLED_MOST = 64
_CHARS_MOST = 1000
_SIMPLE = re.compile(r"[\w.*?{},-]+")
_TOKEN = re.compile(r"\\(.)|\[(!|\^)?(\]?[^\]/]*)\]|(\*+)|(\?)|(.)", re.DOTALL)
_INNERMOST = re.compile(r"(?<!\\)\{([^{}]*)\}")


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Of a path from the folder that is searched. Raises ToolError."""
    if len(pattern) > _CHARS_MOST:
        raise _wrong(pattern[:80], f"it is longer than {_CHARS_MOST} characters")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise _wrong(pattern, "it must be relative, without ..; name the folder in path")
    spelled = [_expression(each.removeprefix("./")) for each in _spelled(pattern)]
    try:
        return re.compile("|".join(spelled), re.DOTALL)
    except re.error as error:
        raise _wrong(pattern, str(error)) from error


def name_glob(pattern: str) -> str | None:
    """A glob that the names of all matching files match; None when there is no simple one."""
    name = pattern.rpartition("/")[2]
    simple = _SIMPLE.fullmatch(name) and name.strip("*") and name.count("{") == name.count("}")
    return name if simple and pattern.count("{") == name.count("{") else None


def _spelled(pattern: str) -> list[str]:
    """The pattern without braces: one for each choice."""
    done, todo = list[str](), [pattern]
    while todo:
        here = todo.pop()
        braces = _INNERMOST.search(here)
        if braces is None:
            done.append(here)
        else:
            before, after = here[: braces.start()], here[braces.end() :]
            todo += [f"{before}{choice}{after}" for choice in braces[1].split(",")]
        if len(done) + len(todo) > _SPELLED_MOST:
            raise _wrong(pattern, f"its braces mean more than {_SPELLED_MOST} patterns")
    return done


def _expression(pattern: str) -> str:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if len(parts) == 1 and "/" not in pattern:
        parts = ["**", *parts]
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_name(part))
    if parts and parts[-1] == "**":
        runs[-1].append("[^/]+")
    return _joined(["/".join(run) for run in runs if run], anchored=bool(runs[0])) + r"\Z"


def _joined(runs: list[str], *, anchored: bool) -> str:
    """Runs of names with any folders between them, and before the first unless it is anchored."""
    made = ""
    for number, run in enumerate(runs):
        last = number == len(runs) - 1
        folders = "" if number == 0 and anchored else "(?:[^/]+/)*"
        if last:
            made += folders + run
        elif folders:
            made += f"(?>{folders}?{run}/)"
        else:
            made += f"{run}/"
    return made


def _name(part: str) -> str:
    """One name between slashes."""
    pieces = [""]  # between the stars
    for token in _TOKEN.finditer(part):
        escaped, negated, characters, stars, one, other = token.groups()
        if stars:
            pieces.append("")
        elif one:
            pieces[-1] += "[^/]"
        elif characters is not None:
            inside = characters.replace("\\", "\\\\").replace("[", "\\[")
            pieces[-1] += f"(?!/)[{'^' if negated else ''}{inside}]"
        else:
            pieces[-1] += re.escape(escaped or other)
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _wrong(pattern: str, why: str) -> ToolError:
    return ToolError(
        "invalid_pattern",
        f"the pattern {pattern!r} can not be used: {why}",
        next_action_hint="Examples: *.py, src/**/*.ts, **/test_*.{py,pyi}",
    )
