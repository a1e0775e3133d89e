"""glob: which files there are."""

import os
from dataclasses import dataclass
from typing import Annotated

import anyio
from pydantic import Field

from agentd.sandbox.commands import Commands
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Effect, tool
from agentd.tools.fs.glob_patterns import glob_regex, name_glob
from agentd.tools.fs.ripgrep import SEARCH_S, named, plain, run_rg, target

_MOST = 1000
_SKIPPED = (
    "Hidden files and those that ignore files name (.gitignore) are left out: name a folder of "
    "them in path to search it."
)


@dataclass(frozen=True, slots=True)
class Paths:
    """`more`: how many paths match beyond those in `paths`. `complete`: there was time for all."""

    content: str
    paths: list[str]
    more: int
    complete: bool


@tool(group="fs", effect=Effect.READ, toolsets=("worker", "subagent"))
async def glob(
    workspace: Workspace,
    commands: Commands,
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            description="As in **/*.go or src/{a,b}/*.ts, from path; without a slash it is about "
            "the names of files in all folders below.",
        ),
    ],
    path: Annotated[
        str, Field(min_length=1, description="The folder to search, from the workspace.")
    ] = ".",
) -> Paths:
    """Find files of the workspace by a glob pattern, sorted by path, 1000 at the most.

    Hidden files and those that ignore files name (.gitignore) are left out, unless path is such a
    folder.
    """
    regex = glob_regex(pattern)
    found = await anyio.to_thread.run_sync(workspace.find, path)
    arguments = ["--files", *type_filter(pattern), "--", target(found)]
    finished = await run_rg(commands, arguments, timeout_s=SEARCH_S)

    def pick() -> list[str]:
        paths = map(plain, finished.output.split("\0")[:-1])
        return sorted(each for each in paths if regex.match(below(each, found)))

    matching = await anyio.to_thread.run_sync(pick)  # of 16 MB, in 64 ways
    complete = not (finished.timed_out or finished.cut_chars)
    return _told(matching, pattern, found, complete=complete)


def type_filter(pattern: str) -> list[str]:
    """Arguments that make ripgrep leave out most of what does not match."""
    name = name_glob(pattern)
    return [f"--type-add=picked:{name}", "--type=picked"] if name else []


def below(path: str, folder: str) -> str:
    """`path` from `folder` on; a file that is searched itself is its name."""
    if path == folder:
        return os.path.basename(path)  # noqa: PTH119 - text, not a file
    return path if folder == "." else path.removeprefix(f"{folder.rstrip('/')}/")


def _told(matching: list[str], pattern: str, folder: str, *, complete: bool) -> Paths:
    shown, more = matching[:_MOST], max(0, len(matching) - _MOST)
    lines = list(shown) or [f"No file matches {pattern} in {named(folder)}. {_SKIPPED}"]
    if more:
        lines.append(f"[{more} more paths are not shown: a narrower pattern or path shows them]")
    if not complete:
        lines.append("[there was no time for all files: search a folder below]")
    return Paths("\n".join(lines), shown, more, complete)
