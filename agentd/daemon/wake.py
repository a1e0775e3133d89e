"""Datagrams by which processes of one home tell each other that the queue changed.

Each listener binds a socket of its own in the home's `run/`; whoever commits a change sends an
empty datagram to all of them. A lost one costs no more than the fallback poll.
"""

import contextlib
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from agentd.domain.news import News

_SUFFIX = ".sock"


@contextmanager
def _address(directory: Path, name: str) -> Generator[str]:
    """A path short enough for a Unix socket (107 bytes), however deep the home lies."""
    path = str(directory / name)
    if len(path.encode()) <= 107 or not Path("/proc/self/fd").is_dir():
        yield path
        return
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def poke(run_directory: Path, news: News = News.QUEUE) -> None:
    """Wake every listener. Never blocks, never fails: who is gone or busy is skipped."""
    try:
        found = os.listdir(run_directory)  # noqa: PTH208 - twice as fast
    except OSError:
        return
    names = [name for name in found if name.endswith(_SUFFIX)]
    if not names:
        return
    try:
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError:
        return  # no descriptor is left; they look again by themselves
    with sender:
        sender.setblocking(False)
        for name in names:
            _send(sender, run_directory, name, bytes([news]))


def _send(sender: socket.socket, run_directory: Path, name: str, said: bytes) -> None:
    try:
        with _address(run_directory, name) as address:
            sender.sendto(said, address)
    except ConnectionRefusedError:
        (run_directory / name).unlink(missing_ok=True)  # its process is gone
    except OSError:
        pass  # full: it will wake anyway


class Wake:
    """Waits for pokes. An async context manager; the socket is there only inside it."""

    def __init__(self, run_directory: Path, name: str) -> None:
        self._directory = run_directory
        self._name = name + _SUFFIX
        self._socket: socket.socket | None = None

    async def __aenter__(self) -> Self:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.setblocking(False)
        with _address(self._directory, self._name) as address:
            listener.bind(address)
            os.chmod(address, 0o600)  # noqa: PTH101 - the address is no Path
        self._socket = listener
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            self._socket.close()
            (self._directory / self._name).unlink(missing_ok=True)

    async def wait(self, timeout_s: float) -> News:
        """The most of what was said since the last call; NONE after `timeout_s`."""
        assert self._socket is not None
        if news := self._drain():
            return news
        with anyio.move_on_after(timeout_s):
            await anyio.wait_readable(self._socket)
        return self._drain()

    def _drain(self) -> News:
        assert self._socket is not None
        news = News.NONE
        with contextlib.suppress(BlockingIOError):
            while True:
                said = self._socket.recv(1)
                # Another version may know more kinds, or none.
                kind = min(said[0], max(News)) if said else News.QUEUE
                news = max(news, News(kind))
        return news
