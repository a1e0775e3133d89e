"""A server as a child process, and what keeps it from harming us.

Its environment is minimal, its lines are bounded, what it writes to standard error is kept as its
last words. A guard (guard.py) stands between: nothing of the server outlives this process.
"""

import os
import re
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import structlog
from anyio.abc import ByteReceiveStream, ObjectSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

import agentd
from agentd.connectors.failures import ServerFailed
from agentd.connectors.specs import ServerSpec

_log = structlog.get_logger()
Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
_GUARD = Path(__file__).with_name("guard.py")
_BUNDLED = {"agentd-system-info": "agentd.connectors.system_info"}
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")
_LINE_MOST_BYTES = 32 * 1024 * 1024
_VALUES_MOST = 300_000  # in one line: each takes a hundred bytes and time on the event loop
_GARBAGE_MOST = 100  # lines that are no message: a banner or a debugging print is forgiven
_LINES_MOST = 5000  # in one second, empty ones, too
_PIECES_MOST = 200  # of standard error that are read in one second
_WORDS_MOST_BYTES = 4096  # of each that are looked at: the last ones
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_KILL_S = 3.0  # the guard's SIGTERM, SIGKILL and farewell


@dataclass(slots=True)
class LastWords:
    """The last lines that a server wrote to standard error."""

    lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=8))

    def take(self, text: str) -> None:
        last = text.rstrip().rsplit("\n", 8)[-8:]  # of a flood only its end is looked at
        self.lines.extend(line.strip()[:300] for line in last if line.strip())

    async def listen(self, stream: ByteReceiveStream) -> None:
        """Until its end. Who writes more than can be of use waits in the pipe."""
        second, pieces = 0, 0
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                piece = await stream.receive()
                self.take(piece[-_WORDS_MOST_BYTES:].decode(errors="replace"))
                now = int(anyio.current_time())
                second, pieces = now, pieces + 1 if now == second else 1
                if pieces >= _PIECES_MOST:
                    await anyio.sleep_until(now + 1)

    def __str__(self) -> str:
        return " | ".join(self.lines)


@asynccontextmanager
async def stdio_streams(
    spec: ServerSpec,
    workdir: Path,
    close_s: float,
    ended: Callable[[str], None],
) -> AsyncGenerator[Streams]:
    """The server's two streams. `ended`: called once, with why, when it is no longer there.

    Raises ServerFailed when it can not be started.
    """
    words = LastWords()
    process, lifeline = await _spawn(spec, workdir)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    to_us, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_us = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        assert process.stdout is not None
        async with to_us:
            try:
                await _Reader(spec.name, process.stdout, to_us).run()
                why = await _how_it_ended(process, words)
            except ServerFailed as error:
                why = error.message
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            ended(why)

    async def write() -> None:
        assert process.stdin is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async for message in from_us:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        group.start_soon(words.listen, process.stderr)
        try:
            yield from_server, to_server
        finally:
            with anyio.CancelScope(shield=True):
                to_server.close()
                await _stop(process, lifeline, close_s)
                from_server.close()
                from_us.close()
            group.cancel_scope.cancel()


async def _spawn(spec: ServerSpec, workdir: Path) -> tuple[Process, int]:
    """The guard's process and our end of its lifeline."""
    command, environment = _command(spec)
    here = os.path.expanduser(spec.cwd) if spec.cwd else workdir  # noqa: PTH111, ASYNC240 - no disk
    theirs, ours = os.pipe()
    try:
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", str(_GUARD), str(theirs), *command],
            env=environment,
            cwd=here,
            start_new_session=True,
            pass_fds=(theirs,),
        )
    except (OSError, ValueError) as error:
        os.close(ours)
        raise ServerFailed(f"it can not be started: {error}") from error
    finally:
        os.close(theirs)
    return process, ours


def server_environment(own: Mapping[str, str]) -> dict[str, str]:
    """What a server gets of our environment, and what is configured for it."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, **kept, **own}


def _command(spec: ServerSpec) -> tuple[list[str], dict[str, str]]:
    """The command line and its environment. Raises ServerFailed."""
    environment = server_environment(spec.env)
    module = _BUNDLED.get(spec.command)
    if module is None:
        return [_find(spec.command, environment["PATH"]), *spec.args], environment
    # Ours: the very code that runs here, whether or not its script is on some PATH.
    environment["PYTHONPATH"] = str(Path(agentd.__file__).parents[1])
    return [sys.executable, "-P", "-m", module, *spec.args], environment


def _find(command: str, path: str) -> str:
    """The program; what was installed beside agentd is found without a PATH to it."""
    command = os.path.expanduser(command)  # noqa: PTH111 - may be a bare name
    beside = Path(sys.executable).parent
    found = shutil.which(command, path=f"{path}{os.pathsep}{beside}")
    if found is None:
        raise ServerFailed(
            f"the program {command!r} is not there", hint="Install it, or mend `command`."
        )
    return found


async def _stop(process: Process, lifeline: int, close_s: float) -> None:
    """Let it end by itself, then end it; bounded."""
    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    with anyio.move_on_after(close_s):
        await process.wait()
    os.close(lifeline)  # the guard ends whatever is left
    with anyio.move_on_after(_KILL_S):
        await process.wait()
    if process.returncode is None:
        _log.error("an MCP server could not be ended", pid=process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.aclose()


async def _how_it_ended(process: Process, words: LastWords) -> str:
    with anyio.move_on_after(1):
        await process.wait()
    code = process.returncode
    how = "it closed its output" if code is None else f"it ended with exit code {code}"
    return f"{how}: {words}" if words.lines else how


def has_too_many_values(line: bytes) -> bool:
    """Whether JSON text holds more values than is bearable, without taking it apart.

    What stands in strings does not count: a text may be long.
    """
    if _marks(line, 0, len(line)) <= _VALUES_MOST:
        return False
    count = end = 0
    for string in _STRING.finditer(line):
        count += 1 + _marks(line, end, string.start())
        end = string.end()
        if count > _VALUES_MOST:
            return True
    return count + _marks(line, end, len(line)) > _VALUES_MOST


def _marks(line: bytes, start: int, end: int) -> int:
    return sum(line.count(mark, start, end) for mark in (b",", b"[", b"{"))


@dataclass(slots=True)
class _Reader:
    """Lines as messages, one at a time, so that a flood waits in the pipe."""

    server: str
    stream: ByteReceiveStream
    to_us: ObjectSendStream[SessionMessage | Exception]
    garbage: int = 0
    lines: int = 0
    second: int = 0

    async def run(self) -> None:
        """Until the end of the stream. Raises ServerFailed."""
        parts: list[bytes] = []
        size = 0
        with suppress(anyio.EndOfStream):
            while True:
                *lines, rest = (await self.stream.receive()).split(b"\n")
                for line in lines:
                    await self._take(b"".join((*parts, line)))
                    parts, size = [], 0
                parts.append(rest)
                size += len(rest)
                if size > _LINE_MOST_BYTES:
                    raise ServerFailed(f"it wrote a line of more than {_LINE_MOST_BYTES} bytes")

    async def _take(self, line: bytes) -> None:
        self._count()
        if not line.strip():
            return
        if has_too_many_values(line):
            raise ServerFailed(f"it wrote a line of more than {_VALUES_MOST} values")
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self.garbage += 1
            _log.debug("no message", server=self.server, line=line[:200])
            if self.garbage > _GARBAGE_MOST:
                raise ServerFailed(
                    f"it writes garbage to standard output, e.g. {line[:80]!r}"
                ) from None
            return
        await self.to_us.send(SessionMessage(message))

    def _count(self) -> None:
        second = int(anyio.current_time())
        if second != self.second:
            self.second, self.lines = second, 0
        self.lines += 1
        if self.lines > _LINES_MOST:
            raise ServerFailed(f"it floods: more than {_LINES_MOST} lines in a second")
