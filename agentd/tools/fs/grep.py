"""grep: where a regular expression occurs.

ripgrep looks twice: it counts the matching lines of every file, then shows those of the first files
by path. So the order is always the same, and what is not shown is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import anyio
from pydantic import Field

from agentd.sandbox.commands import Commands
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Effect, tool
from agentd.tools.fs.glob import below, type_filter
from agentd.tools.fs.glob_patterns import glob_regex
from agentd.tools.fs.matches import Line, lines_of, shown_lines
from agentd.tools.fs.ripgrep import SEARCH_S, named, plain, run_rg, target

_LINE_CHARS = 500
_SHOW_S = 10.0
_SKIPPED = (
    "Binary and hidden files and those that ignore files name (.gitignore) are left out: name one "
    "in path to search it."
)


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line. `line`: from 0, as read counts; `text`: cut where it is long."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """`more`: matching lines beyond `matches`; `complete`: there was time for all files."""

    content: str
    matches: list[Match]
    files: int
    more: int
    complete: bool


@dataclass(frozen=True, slots=True)
class _Counted:
    """`per_file`: how many lines match, by path in order."""

    per_file: Mapping[str, int]
    complete: bool


@tool(group="fs", effect=Effect.READ, toolsets=("worker", "subagent"))
async def grep(  # noqa: PLR0913 - what one wants to ask
    workspace: Workspace,
    commands: Commands,
    pattern: Annotated[str, Field(min_length=1, description="A regular expression (Rust syntax).")],
    path: Annotated[
        str, Field(min_length=1, description="The folder or file to search, from the workspace.")
    ] = ".",
    include: Annotated[
        str | None, Field(min_length=1, description="Only files that match this glob, e.g. *.go.")
    ] = None,
    context_lines: Annotated[
        int, Field(ge=0, le=20, description="Lines to show before and after each match.")
    ] = 0,
    max_results: Annotated[
        int, Field(ge=1, le=1000, description="Matching lines to show at the most.")
    ] = 250,
    ignore_case: Annotated[bool, Field(description="Upper and lower case are the same.")] = False,
) -> Matches:
    """Search the files of the workspace for a regular expression, as path:line:text by path.

    Lines are numbered from 0, as offset of read counts them. Binary and hidden files and those that
    ignore files name (.gitignore) are left out, unless path names them.
    """
    found = await anyio.to_thread.run_sync(workspace.find, path)
    query = [*(["--ignore-case"] if ignore_case else []), "-e", pattern]
    counted = await _count(commands, query, found, include)
    wanted = _first(counted.per_file, max_results)
    lines: list[Line] = []
    if wanted:
        shape = [f"--context={context_lines}", f"--max-count={max_results}", "--line-number"]
        shape += ["--with-filename", f"--max-columns={_LINE_CHARS}", "--max-columns-preview"]
        # A name that is no UTF-8 can not be asked for: then all of the folder is shown again.
        broken = any("\ufffd" in each for each in wanted)
        files = [target(found)] if broken else [target(each) for each in wanted]
        finished = await run_rg(commands, [*shape, *query, "--", *files], timeout_s=_SHOW_S)
        read = partial(lines_of, finished.output, wanted, most=max_results)
        lines = await anyio.to_thread.run_sync(read)
    return _told(lines, counted, found)


async def _count(
    commands: Commands, query: list[str], folder: str, include: str | None
) -> _Counted:
    """The matching lines of each file."""
    regex = glob_regex(include) if include else None
    picked = type_filter(include) if include else []
    arguments = ["--count", "--with-filename", *picked, *query, "--", target(folder)]
    finished = await run_rg(commands, arguments, timeout_s=SEARCH_S)

    def count_all() -> dict[str, int]:
        per_file: dict[str, int] = {}
        for line in finished.output.split("\n"):
            path, _, count = line.partition("\0")
            name = plain(path)
            if count.isdecimal() and (regex is None or regex.match(below(name, folder))):
                per_file[name] = int(count[:18])
        return dict(sorted(per_file.items()))

    complete = not (finished.timed_out or finished.cut_chars)
    return _Counted(await anyio.to_thread.run_sync(count_all), complete)


def _first(per_file: Mapping[str, int], most: int) -> list[str]:
    """The first files that have `most` matching lines together."""
    wanted: list[str] = []
    for path, count in per_file.items():
        if most <= 0:
            break
        wanted.append(path)
        most -= count
    return wanted


def _told(lines: list[Line], counted: _Counted, folder: str) -> Matches:
    matches = [Match(each.path, each.number, each.text) for each in lines if each.matches]
    total, files = sum(counted.per_file.values()), len(counted.per_file)
    more = max(0, total - len(matches))
    told = shown_lines(lines)
    if not told:
        told = [f"No line matches in {named(folder)}. {_SKIPPED}"]
    if more:
        told.append(
            f"[{more} of {total} matching lines in {files} files are not shown: a narrower "
            f"pattern, path or include, or more max_results, shows them]"
        )
    if not counted.complete:
        told.append(
            f"[the search was stopped after {SEARCH_S:.0f} s: this is what was found until then]"
        )
    return Matches("\n".join(told), matches, files, more, counted.complete)
