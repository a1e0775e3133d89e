"""Several processes on one file: everybody gets in, and all see each other's commits."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.file_lease import FileLease
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

_WRITER = """
import sys, anyio
from pathlib import Path
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

async def main():
    async with Store(Path(sys.argv[1])) as store:
        tasks = TaskStore(store, SystemClock())
        for number in range(int(sys.argv[2])):
            await tasks.enqueue(NewTask(prompt=sys.argv[3]))
            print(number, flush=True)

anyio.run(main)
"""


def writer(path: Path, count: int, name: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _WRITER, str(path), str(count), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


async def test_four_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    writers = [writer(path, 25, f"writer {number}") for number in range(3)]
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        for _ in range(25):
            await tasks.enqueue(NewTask(prompt="mine"))
        for each in writers:
            each.communicate(timeout=15)
            assert each.returncode == 0
        assert len(await tasks.list(limit=1000)) == 100


async def test_a_process_gets_in_while_another_never_pauses(tmp_path: Path) -> None:
    """The busy one must let the other in after a few transactions, however many it has to do."""
    path = tmp_path / "a.duckdb"
    done, mine = anyio.Event(), 0
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        await tasks.enqueue(NewTask(prompt="mine"))

        async def never_pause() -> None:
            nonlocal mine
            while not done.is_set():
                await tasks.enqueue(NewTask(prompt="mine"))
                mine += 1

        async with anyio.create_task_group() as group:
            group.start_soon(never_pause)
            with writer(path, 10, "other") as other:
                await anyio.to_thread.run_sync(other.communicate)
                assert other.returncode == 0
            done.set()
        prompts = [task.prompt for task in await tasks.list(limit=100_000)]
    assert prompts.count("other") == 10
    assert prompts.count("mine") == mine + 1
    assert mine > 10


def test_a_lease_is_held_by_one_and_seen_by_the_other(tmp_path: Path) -> None:
    one, two = FileLease(tmp_path / "a.duckdb"), FileLease(tmp_path / "a.duckdb")
    one.acquire(1)
    assert one.held
    assert not one.wanted()
    with pytest.raises(Exception, match="is in use"):
        two.acquire(0.05)
    one.release()
    assert two.acquire(1) >= 0
    two.close()
    one.close()


def test_only_who_let_go_in_peace_leaves_word_for_the_next(tmp_path: Path) -> None:
    first, second = FileLease(tmp_path / "a.duckdb"), FileLease(tmp_path / "a.duckdb")
    first.acquire(1)
    first.release("all is well")
    second.acquire(1)
    assert second.last_words == "all is well"
    os.close(second._lease_fd)  # as the kernel does for a process that was killed
    first.acquire(1)
    assert first.last_words == ""
    first.close()


async def test_a_store_at_rest_knows_whether_somebody_else_has_written(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        await tasks.enqueue(NewTask(prompt="mine"))
        assert not store.untouched()  # it still holds the file
        with anyio.fail_after(10):
            while not store.untouched():  # noqa: ASYNC110 - nothing tells
                await anyio.sleep(0.01)
            process = writer(path, 1, "theirs")
            await anyio.to_thread.run_sync(process.communicate)
        assert not store.untouched()


def test_a_disk_that_is_full_takes_the_lease_from_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    one, two = FileLease(tmp_path / "a.duckdb"), FileLease(tmp_path / "a.duckdb")
    one.acquire(1)
    one.release("all is well")
    two.acquire(1)
    assert two.held
    two.close()
    one.close()
