"""Processes outside the sandbox, for what the owner configured: without a shell, with a small
environment, in a session of their own, which ends with them: TERM, five seconds later KILL.
"""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process

from agentd.domain.errors import ToolError
from agentd.sandbox.capture import Capture
from agentd.sandbox.commands import Finished

GRACE_S = 5.0
_LAST_WORDS_S = 0.5  # what a process has left behind may hold its output open for ever
_KEPT = ("HOME", "LANG", "LOGNAME", "PATH", "TZ", "USER")


def small_environment() -> dict[str, str]:
    """Of the daemon's own environment what a program needs to start, and no secret."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


async def run_on_host(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    stdin: bytes = b"",
    timeout_s: float,
    most_chars: int,
) -> Finished:
    """Run it to its end, its standard error among its output. Raises ToolError."""
    capture = Capture(most_chars)
    started = anyio.current_time()
    code: int | None = None
    with anyio.move_on_after(timeout_s) as scope:
        async with (
            _started(argv, environment, folder) as process,
            anyio.create_task_group() as both,
        ):
            drained = anyio.Event()
            both.start_soon(_feed, process, stdin)
            both.start_soon(_drain, process, capture, drained)
            code = await process.wait()
            with anyio.move_on_after(_LAST_WORDS_S):
                await drained.wait()
            both.cancel_scope.cancel()
    capture.feed(b"", final=True)
    timed_out, took_s = code is None and scope.cancelled_caught, anyio.current_time() - started
    return Finished(code, capture.text(), capture.cut_chars, timed_out, took_s)


@asynccontextmanager
async def _started(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path
) -> AsyncGenerator[Process]:
    try:
        process = await anyio.open_process(
            list(argv),
            env=dict(environment),
            cwd=folder,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(
            "not_started", f"{argv[0]} could not be started: {error.strerror}"
        ) from error
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: Process) -> None:
    """Of the whole session, however the block was left: what it left behind must not stay."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        with anyio.move_on_after(GRACE_S):
            await process.wait()
    _signal(process.pid, signal.SIGKILL)
    await process.aclose()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        if data:
            await process.stdin.send(data)
        await process.stdin.aclose()


async def _drain(process: Process, capture: Capture, drained: anyio.Event) -> None:
    assert process.stdout is not None
    async for data in process.stdout:
        capture.feed(data)
    drained.set()
