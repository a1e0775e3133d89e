"""The gate of a schedule: a command of its owner that says whether a run is worth its money."""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR")
_TAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Gate:
    """Runs gates in `directory`, each for `timeout_s` at most. Keys of agentd are not passed on."""

    directory: Path
    timeout_s: float

    async def ask(self, command: str) -> str | None:
        """None when it exits with 0; else why no run is to be made."""
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        try:
            process = await anyio.open_process(
                command,
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a character that no command has
            return f"its gate could not be run: {error}"
        try:
            with anyio.fail_after(self.timeout_s):
                said = await _output(process)
                code = await process.wait()
        except TimeoutError:
            return f"its gate took longer than {self.timeout_s:g} s (schedules.gate_seconds)"
        finally:
            _kill_group(process)
            with anyio.CancelScope(shield=True):
                await process.aclose()
        return f"its gate exited with {code}: {said}".rstrip(": ") if code else None


async def _output(process: Process) -> str:
    """The end of what it says, on one line."""
    assert process.stdout is not None
    tail = b""
    async for piece in process.stdout:
        tail = (tail + piece)[-_TAIL_CHARS:]
    return " ".join(tail.decode(errors="replace").split())


def _kill_group(process: Process) -> None:
    """Whatever it has started ends with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
