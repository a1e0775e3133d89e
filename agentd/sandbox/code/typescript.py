"""Programs in TypeScript, on Deno without any permission, in a process of its own.

There are no snapshots: after a crash a program runs again. So that it comes by the same way, its
clock and its random numbers are given, and its calls are answered while it stands still.
Time and memory are bounded from outside: by the daemon, and by limits of the process.
"""

import contextlib
import hashlib
import importlib
import json
import math
import os
import secrets
import shutil
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from agentd.domain.jsons import is_object
from agentd.sandbox.code.jsonable import NotJson, jsonable
from agentd.sandbox.code.program import (
    Answer,
    Asked,
    Broken,
    Ended,
    NotRestored,
    Paused,
    Setting,
    Snapshot,
    Step,
    Unavailable,
)
from agentd.sandbox.code.wall import wall

_BOOTSTRAP = Path(__file__).with_name("bootstrap.ts")
_FLAGS = ["--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--cached-only"]
# Deno looks for its caches for 150 ms where it can not make them. Behind the wall they may lie in a
# megabyte of memory that goes with it; else in a place that nobody can make.
_ENVIRONMENT = {"NO_COLOR": "1", "DENO_DIR": "/dev/null/deno"}
_ENVIRONMENT_BEHIND_WALL = {"NO_COLOR": "1", "DENO_DIR": "/tmp/deno"}  # noqa: S108 - its own
_FILE_BLOCKS_BEHIND_WALL = 256  # of 512 bytes
_DENO_BYTES = 160 << 20  # what Deno itself takes
_SPARE_BYTES = 1 << 16
_STDERR_BYTES = 1 << 14
_END_S = 2.0
_WATCH = (
    '(while kill -0 "$PPID"; do sleep 1; done; kill -9 $$) </dev/null >/dev/null 2>/dev/null & '
)


class TypeScriptCode:
    """Starts one Deno for each program; `deno` is the program file."""

    keeps_state = False

    def __init__(self, deno: Path) -> None:
        self._deno = deno
        self._wall: list[str] = []

    @asynccontextmanager
    async def open(self, setting: Setting) -> AsyncGenerator["TypeScriptProgram"]:
        argv = await anyio.to_thread.run_sync(self._argv, setting)
        try:
            process = await anyio.open_process(argv, env=_ENVIRONMENT, start_new_session=True)
        except OSError as error:
            raise Unavailable(f"Deno can not be started: {error}") from error
        try:
            yield TypeScriptProgram(process, setting)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)

    def _argv(self, setting: Setting) -> list[str]:
        limits = setting.limits
        heap_mb = limits.memory_bytes >> 20
        data_kb = (_DENO_BYTES + limits.memory_bytes) >> 10
        cpu_s = math.ceil(limits.run_s) + 2  # should the daemon be gone before it
        # jitless: no code is generated at run time, where most holes of V8 were.
        flags = f"--v8-flags=--jitless,--max-old-space-size={heap_mb}"
        # The wall ends with the daemon; where there is none, somebody has to look.
        wall = self._built_wall()
        watch, file_blocks = ("", _FILE_BLOCKS_BEHIND_WALL) if wall else (_WATCH, 0)
        bounds = f"ulimit -c 0; ulimit -f {file_blocks}; ulimit -d {data_kb}; ulimit -t {cpu_s}"
        return [
            "/bin/sh",
            "-c",
            f"{watch}trap '' XFSZ; {bounds}; exec \"$@\"",
            "sh",
            *wall,
            os.fspath(self._deno),
            "run",
            *_FLAGS,
            flags,
            os.fspath(_BOOTSTRAP),
        ]

    def _built_wall(self) -> list[str]:
        """A second wall around Deno's own, where this machine can build one. Blocks."""
        if not self._wall:  # it may have been too busy the last time
            self._wall = wall([self._deno, _BOOTSTRAP], _ENVIRONMENT_BEHIND_WALL)
        return self._wall


class TypeScriptProgram:
    """One program in one process."""

    def __init__(self, process: Process, setting: Setting) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._setting = setting
        self._stdin: ByteSendStream = process.stdin
        self._frames = _Frames(process.stdout, setting)
        self._stderr: ByteReceiveStream = process.stderr
        self._at_ms = setting.now_ms
        self._spent_s = 0.0
        self._asked = 0

    @property
    def printed(self) -> str:
        return self._frames.printed

    @property
    def spent_s(self) -> float:
        return self._spent_s

    async def start(self, code: str) -> Step:
        digest = hashlib.sha256(self._setting.seed.encode()).digest()
        functions = self._setting.functions
        opening = {
            "secret": self._frames.secret,
            "code": code,
            "names": [[name, function.tool] for name, function in functions.items()],
            "seed": [int.from_bytes(digest[at : at + 4]) for at in range(0, 16, 4)],
            "now_ms": self._setting.now_ms,
            "value_bytes": self._setting.limits.value_bytes,
        }
        return await self._go(opening)

    async def restore(self, snapshot: Snapshot) -> Step:
        raise NotRestored(f"there are no snapshots of TypeScript ({snapshot.asked} calls)")

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        self._at_ms = max([self._at_ms, *(each.at_ms for each in answers.values())])
        given: list[dict[str, Any]] = []
        for number, each in sorted(answers.items()):
            if each.error is None:
                given.append({"number": number, "value": each.value})
            else:
                given.append({"number": number, "error": each.error, "error_type": each.error_type})
        return await self._go({"answers": given, "now_ms": self._at_ms})

    def snapshot(self) -> Snapshot | None:
        return None

    async def _go(self, message: Mapping[str, Any]) -> Step:
        started = anyio.current_time()
        left_s = self._setting.limits.run_s - self._spent_s
        try:
            with anyio.fail_after(max(left_s, 0)):
                data = json.dumps(message, ensure_ascii=True).encode() + b"\n"
                with contextlib.suppress(anyio.BrokenResourceError):
                    await self._stdin.send(data)
                return self._step(await self._frames.next())
        except TimeoutError:
            run_s = self._setting.limits.run_s
            return Broken("timeout", f"The program ran longer than {run_s:g} s.")
        except _TooMuch as why:
            return Broken(why.error_type, str(why))
        except anyio.EndOfStream:
            return await self._gone()
        finally:
            self._spent_s += anyio.current_time() - started

    def _step(self, frame: Mapping[str, Any]) -> Step:
        try:
            return self._read(frame)
        except NotJson as error:
            return Broken("program_error", f"the arguments of a tool can not be sent: {error}")
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            return Broken("crashed", f"The interpreter said what makes no sense: {error!r}")

    def _read(self, frame: Mapping[str, Any]) -> Step:
        if "asked" in frame:
            return self._paused(frame["asked"])
        if "ended" in frame:
            if left := frame.get("left"):
                calls = ", ".join(f"{each['tool']} (line {each['line']})" for each in left)
                return Broken(
                    "not_awaited",
                    f"called without await, so it was not carried out: {calls}. "
                    "Write `await tool({...})`. Everything before has happened.",
                )
            try:
                return Ended(jsonable(frame["ended"], most_bytes=self._setting.limits.value_bytes))
            except NotJson as error:
                return Broken("invalid_result", f"what the program gives can not be sent: {error}")
        return Broken(*_kind_of(str(frame.get("broken", "no message"))))

    def _paused(self, calls: list[dict[str, Any]]) -> Step:
        most = self._setting.limits.tool_calls
        if self._asked + len(calls) > most:
            return Broken(
                "too_many_calls",
                f"A program may call {most} tools, and this one wanted more; it was ended there.",
            )
        asked = [self._one(self._asked + at, each) for at, each in enumerate(calls, 1)]
        if not asked:
            raise ValueError("it waits for no call")
        self._asked += len(asked)
        return Paused(asked)

    def _one(self, number: int, call: Mapping[str, Any]) -> Asked:
        """The call as it was said: a program can have a hand in it. Raises ValueError, NotJson."""
        tool, arguments = call["tool"], json.loads(call["arguments"])
        if call["number"] != number or tool not in self._frames.tools or not is_object(arguments):
            raise ValueError(f"call {number} is none")
        most_bytes = self._setting.limits.value_bytes
        return Asked(number, tool, jsonable(arguments, most_bytes=most_bytes), int(call["line"]))

    async def _gone(self) -> Broken:
        """The process ended without a word."""
        said = b""
        with anyio.move_on_after(_END_S), contextlib.suppress(anyio.EndOfStream):
            while len(said) < _STDERR_BYTES:
                said += await self._stderr.receive()
        with anyio.move_on_after(_END_S):
            await self._process.wait()
        text = said.decode(errors="replace")
        if "out of memory" in text.lower():
            most = self._setting.limits.memory_bytes >> 20
            return Broken("out_of_memory", f"The program needs more than {most} MB.")
        if self._process.returncode == 0:
            return Broken("program_error", "The program waits for something that never comes.")
        return Broken("crashed", f"The interpreter has ended ({self._process.returncode}).")


class _TooMuch(Exception):
    """The program prints or sends more than it may."""

    def __init__(self, error_type: str, message: str) -> None:
        self.error_type = error_type
        super().__init__(message)


class _Frames:
    """Reads what the process writes. A frame starts with the secret; all else was printed."""

    def __init__(self, stream: ByteReceiveStream, setting: Setting) -> None:
        self.secret = secrets.token_hex(16)
        self._mark = self.secret.encode()
        self._stream = stream
        self._limits = setting.limits
        self.tools = {function.tool for function in setting.functions.values()}
        self._buffer = bytearray()
        self._parts: list[str] = []
        self._printed_bytes = 0

    @property
    def printed(self) -> str:
        return "".join(self._parts)

    async def next(self) -> dict[str, Any]:
        """The next frame that is no output. Raises EndOfStream, _TooMuch."""
        while True:
            line = await self._line()
            before, mark, rest = line.partition(self._mark)
            self._print((before if mark else line).decode(errors="replace"))
            frame = _parsed(rest) if mark else None
            if frame is None:
                continue
            if "printed" not in frame:
                return frame
            self._print(str(frame["printed"]))

    async def _line(self) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            # All calls of a batch come in one line, each as large as a value may be.
            most = self._limits.value_bytes * (self._limits.tool_calls + 2) + _SPARE_BYTES
            if searched > max(most, self._limits.output_bytes):
                raise _TooMuch("too_much_output", "The program sent more than it may.")
            try:
                self._buffer += await self._stream.receive()
            except anyio.EndOfStream:
                self._print(self._buffer.decode(errors="replace"))
                self._buffer.clear()
                raise
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def _print(self, text: str) -> None:
        self._printed_bytes += len(text.encode(errors="replace"))
        most = self._limits.output_bytes
        if self._printed_bytes > most:
            raise _TooMuch("too_much_output", f"The program printed more than {most} bytes.")
        if text:
            self._parts.append(text)


def _parsed(data: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError, RecursionError):
        frame: object = json.loads(data)
        if is_object(frame):
            return frame
    return None


def _kind_of(text: str) -> tuple[str, str]:
    if "RangeError: Array buffer allocation failed" in text:
        return "out_of_memory", text
    return ("syntax_error" if "SyntaxError" in text.split("\n", 1)[0] else "program_error"), text


async def _end(process: Process) -> None:
    """It and everything it started are gone when this returns."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(_END_S):
        await process.aclose()


def find_deno() -> Path | None:
    """The program, from the package `deno` or the PATH; None where there is none."""
    try:
        found = importlib.import_module("deno").find_deno_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("deno")
    return Path(found) if found else None
