"""Processes of agentd that need not import everything again: each is a fork of one that has.

They are real processes with their own pid, environment and descriptors, to be killed for real. How
agentd starts from nothing is shown where that is the matter: tests/e2e/test_cli_process.py, the
service and the documents.
"""

import array
import atexit
import contextlib
import fcntl
import functools
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

_PACKAGES = ("agentd.cli", "agentd.tools", "agentd.connectors", "agentd.models", "agentd.daemon")
_LONGEST = 1 << 20
_PIPE_BYTES = 1 << 20
_HANDED = 4  # standard input, output, error; where the exit code is told


@dataclass
class Process:
    """One that was started; `wait` and what it says on `stderr` are for one task at a time."""

    pid: int
    stderr: int
    _told: int
    returncode: int | None = None
    _closed: bool = field(default=False, init=False)

    async def receive(self) -> bytes:
        """What it says on standard error. Raises EndOfStream."""
        await anyio.wait_readable(self.stderr)
        data = os.read(self.stderr, 65_536)
        if not data:
            raise anyio.EndOfStream
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """All that it says on standard error."""
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                yield await self.receive()

    async def wait(self) -> int:
        if self.returncode is None:
            await anyio.wait_readable(self._told)
            self.returncode = int(os.read(self._told, 16))
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing, when it has ended already."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def aclose(self) -> None:
        """Kill it if it is still there."""
        if not self._closed:
            self._closed = True
            self.send_signal(signal.SIGKILL)
            await self.wait()
            os.close(self.stderr)
            os.close(self._told)


def start(
    arguments: Sequence[str], environment: Mapping[str, str], stdout: int | None = None
) -> Process:
    """`agentd ARGUMENTS` with standard error in a pipe. `stdout`: None is nowhere."""
    server = _server()
    heard, says = os.pipe()
    told, tells = os.pipe()
    # A test that does not listen must not hold a daemon up.
    fcntl.fcntl(says, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    with Path(os.devnull).open("r+b", buffering=0) as nothing:
        request = {"arguments": arguments, "environment": environment, "folder": str(Path.cwd())}
        out = nothing.fileno() if stdout is None else stdout
        handed = [nothing.fileno(), out, says, tells]
        socket.send_fds(server, [json.dumps(request).encode()], handed)
    os.close(says)
    os.close(tells)
    return Process(int(server.recv(16)), heard, told)


@functools.cache
def _server() -> socket.socket:
    """Of this process, and ended with it: when the socket closes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait(10)

    return ours


def serve(server: socket.socket) -> list[str] | None:
    """Fork for each request. Comes back in a child, with its arguments; with None at the end."""
    children: dict[int, int] = {}  # pid → where its exit code is told
    wakes, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([server, wakes], [], [])
        if wakes in readable:
            os.read(wakes, 4096)
            _reap(children)
        if server not in readable:
            continue
        data, handed = _request(server)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (*children.values(), wakes, waker, server.detach()):
                os.close(fd)
            return _become(json.loads(data), handed)
        children[pid] = handed.pop()
        for fd in handed:
            os.close(fd)
        server.send(str(pid).encode())


def _request(server: socket.socket) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(_HANDED * array.array("i").itemsize)
    data, extra, _, _ = server.recvmsg(_LONGEST, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for _, _, content in extra:
        fds.frombytes(content)
    return data, list(fds)


def _become(request: dict[str, object], handed: list[int]) -> list[str]:
    for number, fd in enumerate(handed[:3]):
        os.dup2(fd, number)
    for fd in handed:
        os.close(fd)
    environment, arguments = request["environment"], request["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(request["folder"]))
    return arguments


def _reap(children: dict[int, int]) -> None:
    for pid in list(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            tells = children.pop(pid)
            os.write(tells, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(tells)


def _main() -> None:
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    from agentd.cli.main import main  # noqa: PLC0415 - the tests import this file, too

    arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    if arguments is not None:
        sys.argv = ["agentd", *arguments]
        main()


if __name__ == "__main__":
    _main()
