"""The gate of a schedule: a command of its owner that says whether a run is worth its money."""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR")
_TAIL_BYTES = 200
_LISTEN_ON_S = 0.5


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
        tail, code = bytearray(), None
        async with anyio.create_task_group() as listening:
            listening.start_soon(_listen, process, tail)
            try:
                with anyio.move_on_after(self.timeout_s):
                    code = await process.wait()
            finally:
                _kill_group(process)
                # What it said is in the pipe; who has left its group may hold that open for ever.
                with anyio.move_on_after(_LISTEN_ON_S, shield=True):
                    await process.aclose()
                listening.cancel_scope.cancel()
        if code is None:
            return f"its gate took longer than {self.timeout_s:g} s (schedules.gate_seconds)"
        said = " ".join(tail.decode(errors="replace").split())
        return f"its gate exited with {code}: {said}".rstrip(": ") if code else None


async def _listen(process: Process, tail: bytearray) -> None:
    """Keep the end of what it says."""
    assert process.stdout is not None
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for piece in process.stdout:
            tail += piece
            del tail[:-_TAIL_BYTES]


def _kill_group(process: Process) -> None:
    """Whatever it has started ends with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
