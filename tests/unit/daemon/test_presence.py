"""Who lives is seen in a lock that the kernel drops; the reaper puts back what the dead held."""

import stat
from pathlib import Path

import anyio

from agentd.daemon.presence import Presence, dead_ones, forget, is_alive
from agentd.daemon.reaper import Reaper
from agentd.domain.ids import DaemonId
from agentd.domain.task import NewTask, TaskState
from agentd.store.daemons import DaemonStore
from agentd.store.runs import RunStore
from agentd.store.tasks import TaskStore

_ONE, _TWO = DaemonId("daemon-1"), DaemonId("daemon-2")


def test_a_daemon_is_alive_while_it_holds_its_lock(tmp_path: Path) -> None:
    assert not is_alive(tmp_path, _ONE)
    with Presence(tmp_path, _ONE):
        assert is_alive(tmp_path, _ONE)
        assert not is_alive(tmp_path, _TWO)
        (path,) = tmp_path.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not is_alive(tmp_path, _ONE)
    assert dead_ones(tmp_path) == {_ONE}  # until its tasks were seen to


def test_the_file_of_a_dead_daemon_says_nothing_without_its_lock(tmp_path: Path) -> None:
    (tmp_path / f"{_ONE}.alive").touch()
    assert not is_alive(tmp_path, _ONE)
    forget(tmp_path, _ONE)
    assert not list(tmp_path.iterdir())


async def _register(daemons: DaemonStore, *ids: DaemonId) -> None:
    for each in ids:
        await daemons.register(each, pid=1, host="h", version="0", concurrency=1)


async def test_the_reaper_puts_back_the_tasks_of_the_dead_and_of_nobody_else(
    tmp_path: Path, tasks: TaskStore, runs: RunStore, daemons: DaemonStore
) -> None:
    await _register(daemons, _ONE, _TWO)
    for prompt in ("of one", "of two"):
        await tasks.enqueue(NewTask(prompt=prompt, enqueued_by="test"))
    await runs.glance(_ONE, limit=1)
    await runs.glance(_TWO, limit=1)
    with Presence(tmp_path, _TWO):
        await Reaper(DaemonId("me"), tmp_path, daemons, runs).reap()
    states = {task.prompt: task.state for task in await tasks.list()}
    assert states == {"of one": TaskState.PENDING, "of two": TaskState.RUNNING}
    assert await daemons.not_stopped() == [_TWO]


async def test_the_reaper_never_takes_its_own_daemon_for_dead(
    tmp_path: Path, runs: RunStore, daemons: DaemonStore
) -> None:
    await _register(daemons, _ONE)
    await Reaper(_ONE, tmp_path, daemons, runs).reap()
    assert await daemons.not_stopped() == [_ONE]


async def test_what_a_daemon_that_signed_off_left_running_goes_back(
    tmp_path: Path, tasks: TaskStore, runs: RunStore, daemons: DaemonStore
) -> None:
    await _register(daemons, _ONE)
    task = (await tasks.enqueue(NewTask(prompt="x", enqueued_by="test"))).task
    await runs.glance(_ONE, limit=1)
    await daemons.stopped([_ONE])
    await Reaper(_TWO, tmp_path, daemons, runs).reap()
    assert (await tasks.get(task.id)).state is TaskState.PENDING


async def test_the_reaper_ends_with_its_daemon(
    tmp_path: Path, runs: RunStore, daemons: DaemonStore
) -> None:
    stopping = anyio.Event()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(Reaper(_ONE, tmp_path, daemons, runs).run, stopping)
            stopping.set()
