"""What systemd is told, over real sockets."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from agentd.daemon import notify
from agentd.daemon.notify import Notifier
from tests.watching import capture


def _listener(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(address)
    listener.settimeout(5)
    return listener


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with closing(_listener(str(tmp_path / "notify"))) as listener:
        yield listener


async def _heard(manager: socket.socket) -> str:
    return (await anyio.to_thread.run_sync(manager.recv, 4096)).decode()


def _silent(manager: socket.socket) -> bool:
    manager.setblocking(False)
    try:
        manager.recv(4096)
    except BlockingIOError:
        return True
    finally:
        manager.settimeout(5)
    return False


def test_the_variables_are_taken_out_of_the_environment(manager: socket.socket) -> None:
    environment = {
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "2000000",
        "WATCHDOG_PID": str(os.getpid()),
        "PATH": "/bin",
    }
    Notifier.from_environment(environment).ready()
    assert manager.recv(100) == b"READY=1"
    assert environment == {"PATH": "/bin"}


def test_a_name_in_the_abstract_space(tmp_path: Path) -> None:
    name = f"agentd-test-{tmp_path.name}-{os.getpid()}"
    with closing(_listener(f"\0{name}")) as listener:
        Notifier(f"@{name}").ready()
        assert listener.recv(100) == b"READY=1"


def test_a_status_is_one_line_and_sent_when_it_changes(manager: socket.socket) -> None:
    notifier = Notifier(manager.getsockname())
    for text in ("working", "working", "memory:\nREADY=1"):
        notifier.status(text)
    assert manager.recv(100) == b"STATUS=working"
    assert manager.recv(100) == b"STATUS=memory: READY=1"
    assert _silent(manager)


async def test_pings_come_while_all_is_well_and_then_the_stop(manager: socket.socket) -> None:
    well, stopping = True, anyio.Event()
    notifier = Notifier(manager.getsockname(), watchdog_s=0.04)
    async with anyio.create_task_group() as group:
        group.start_soon(notifier.run, stopping, lambda: well)
        assert [await _heard(manager) for _ in range(3)] == ["WATCHDOG=1"] * 3
        well = False
        await anyio.sleep(0.05)
        while not _silent(manager):
            pass  # what was on its way
        await anyio.sleep(0.1)
        assert _silent(manager)
        stopping.set()
        assert await _heard(manager) == "STOPPING=1"
        well = True
        assert await _heard(manager) == "WATCHDOG=1"  # while it drains, too
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    "environment",
    [
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},  # meant for another process
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {},
    ],
)
async def test_nobody_is_pinged_who_has_not_asked(
    environment: dict[str, str], manager: socket.socket
) -> None:
    stopping = anyio.Event()
    stopping.set()
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": manager.getsockname(), **environment})
    async with anyio.create_task_group() as group:
        group.start_soon(notifier.run, stopping, lambda: True)
        assert await _heard(manager) == "STOPPING=1"
        await anyio.sleep(0.02)
        assert _silent(manager)
        group.cancel_scope.cancel()


def test_a_manager_that_is_gone_is_complained_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = Notifier(str(tmp_path / "gone"))
    lines = capture(monkeypatch, notify)
    notifier.ready()
    notifier.status("working")
    assert [line["event"] for line in lines] == ["the service manager could not be told"]


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = capture(monkeypatch, notify)
    Notifier.from_environment({"WATCHDOG_USEC": "1000"}).ready()
    assert not lines
