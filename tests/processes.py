"""Real agentd processes: the daemon and the command line (forks of a warm one: tests/warm.py)."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio

from agentd.home import make_home
from tests import warm


@dataclass(frozen=True)
class Home:
    """A home on disk and the variables that its processes get."""

    path: Path
    variables: Mapping[str, str]

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "AGENTD_HOME": str(self.path), "PYTHONUNBUFFERED": "1", **self.variables}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "agentd", *arguments]

    async def run(self, *arguments: str, timeout_s: float = 15) -> "Finished":
        """Run `agentd ARGUMENTS` to its end."""
        with anyio.fail_after(timeout_s), TemporaryFile() as out:
            process = warm.start(arguments, self.environment, out.fileno())
            try:
                err = b"".join([piece async for piece in process])
                code = await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await process.aclose()
            out.seek(0)
            return Finished(code, out.read().decode(), err.decode())

    async def enqueue(self, prompt: str, *options: str) -> str:
        """The id of the new task."""
        done = await self.run("enqueue", prompt, "--json", *options)
        assert done.code == 0, done.err
        return str(json.loads(done.out)["task"]["id"])

    async def task(self, task_id: str) -> dict[str, Any]:
        done = await self.run("task", "view", task_id, "--json")
        assert done.code == 0, done.err
        viewed: dict[str, Any] = json.loads(done.out)
        return viewed

    @asynccontextmanager
    async def daemon(self, *options: str) -> AsyncIterator["Daemon"]:
        """`agentd run` in the background; killed after the block if it is still there."""
        process = warm.start(["run", *options], self.environment)
        daemon = Daemon(process)
        try:
            await daemon.logged("daemon started")
            yield daemon
        finally:
            with anyio.CancelScope(shield=True):
                await process.aclose()


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


class Daemon:
    """`lines`: what it has logged so far, as JSON objects."""

    def __init__(self, process: warm.Process) -> None:
        self._process = process
        self._text = ""
        self.lines: list[dict[str, Any]] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def logged(self, event: str, times: int = 1) -> dict[str, Any]:
        """The line that says `event` for the n-th time, as soon as it is there."""
        with anyio.fail_after(15):
            while True:
                found = [line for line in self.lines if line.get("event") == event]
                if len(found) >= times:
                    return found[times - 1]
                await self._read()

    async def ended(self) -> int:
        """The exit code."""
        with anyio.fail_after(15):
            try:
                while True:
                    await self._read()
            except anyio.EndOfStream:
                return await self._process.wait()

    async def _read(self) -> None:
        self._text += (await self._process.receive()).decode()
        *whole, self._text = self._text.split("\n")
        for line in whole:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.lines.append({"event": "not JSON", "text": line})


def new_home(path: Path, **variables: str) -> Home:
    """A home in `path`; variables as AGENTD_<name> with `__` between section and key."""
    home = path / "home"
    make_home(home)
    return Home(home, {f"AGENTD_{name}": value for name, value in variables.items()})
