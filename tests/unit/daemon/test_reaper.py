"""The reaper puts back what daemons left running that died, or that hang."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import anyio
import pytest

from agentd.daemon.leases import Watch
from agentd.daemon.presence import Presence
from agentd.daemon.reaper import Reaper
from agentd.domain.ids import DaemonId
from agentd.domain.task import NewTask, TaskState
from agentd.store.daemons import DaemonStore
from agentd.store.leases import Held, LeaseStore
from agentd.store.runs import Ending, RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.clock import HandClock

_ONE, _TWO = DaemonId("daemon-1"), DaemonId("daemon-2")
MakeReaper = Callable[[DaemonId], Reaper]


@pytest.fixture
def reaper(
    tmp_path: Path, daemons: DaemonStore, leases: LeaseStore, clock: HandClock
) -> MakeReaper:
    def make(own: DaemonId) -> Reaper:
        watch = Watch(lease_s=60, step_s=60)
        return Reaper(own, tmp_path, daemons, leases, watch, clock, 30)

    return make


@pytest.fixture
def both_live(tmp_path: Path) -> Iterator[None]:
    with Presence(tmp_path, _ONE), Presence(tmp_path, _TWO):
        yield


async def _register(daemons: DaemonStore, *ids: DaemonId) -> None:
    for each in ids:
        await daemons.register(each, pid=1, host="h", version="0", concurrency=1)


async def test_the_tasks_of_the_dead_go_back_and_those_of_nobody_else(
    tmp_path: Path, tasks: TaskStore, runs: RunStore, daemons: DaemonStore, reaper: MakeReaper
) -> None:
    await _register(daemons, _ONE, _TWO)
    for prompt in ("of one", "of two"):
        await tasks.enqueue(NewTask(prompt=prompt, enqueued_by="test"))
    await runs.glance(_ONE, limit=1)
    await runs.glance(_TWO, limit=1)
    with Presence(tmp_path, _TWO):
        await reaper(DaemonId("me")).reap()
    states = {task.prompt: task.state for task in await tasks.list()}
    assert states == {"of one": TaskState.PENDING, "of two": TaskState.RUNNING}
    assert await daemons.not_stopped() == [_TWO]


async def test_its_own_daemon_is_never_taken_for_dead(
    daemons: DaemonStore, reaper: MakeReaper
) -> None:
    await _register(daemons, _ONE)
    await reaper(_ONE).reap()
    assert await daemons.not_stopped() == [_ONE]


async def test_what_a_daemon_that_signed_off_left_running_goes_back(
    tasks: TaskStore, runs: RunStore, daemons: DaemonStore, reaper: MakeReaper
) -> None:
    await _register(daemons, _ONE)
    task = (await tasks.enqueue(NewTask(prompt="x", enqueued_by="test"))).task
    await runs.glance(_ONE, limit=1)
    await daemons.stopped([_ONE])
    await reaper(_TWO).reap()
    assert (await tasks.get(task.id)).state is TaskState.PENDING


@pytest.mark.usefixtures("both_live")
async def test_a_lease_that_is_not_renewed_runs_out(
    tasks: TaskStore, runs: RunStore, leases: LeaseStore, reaper: MakeReaper, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    await runs.glance(_ONE, limit=1)
    watching = reaper(_TWO)
    for look in range(5):  # renewed between the looks
        await watching.look_at_leases()
        clock.advance(50)
        if look < 4:
            await leases.renew(_ONE)
    assert (await tasks.get(task.id)).state is TaskState.RUNNING
    await watching.look_at_leases()  # 50 s old
    assert (await tasks.get(task.id)).state is TaskState.RUNNING
    clock.advance(30)
    await watching.look_at_leases()
    assert (await tasks.get(task.id)).state is TaskState.PENDING
    assert await leases.renew(_ONE) == frozenset()
    assert [run["ending"] for run in await runs.of_task(task.id)] == ["lost"]


@pytest.mark.usefixtures("both_live")
@pytest.mark.parametrize("jump_s", [3600, -3600])
async def test_a_clock_that_jumps_ends_no_lease_and_keeps_none(
    jump_s: float, tasks: TaskStore, runs: RunStore, reaper: MakeReaper, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    await runs.glance(_ONE, limit=1)
    watching = reaper(_TWO)
    await watching.look_at_leases()
    clock.jump(jump_s)
    clock.advance(30)
    await watching.look_at_leases()
    assert (await tasks.get(task.id)).state is TaskState.RUNNING
    clock.advance(30)
    await watching.look_at_leases()
    assert (await tasks.get(task.id)).state is TaskState.PENDING


@pytest.mark.usefixtures("both_live")
async def test_after_a_suspended_machine_wakes_its_daemons_have_time_to_renew(
    tmp_path: Path,
    tasks: TaskStore,
    runs: RunStore,
    leases: LeaseStore,
    daemons: DaemonStore,
    clock: HandClock,
) -> None:
    """The watching daemon stood still as well: it has seen nothing for hours."""
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    await runs.glance(_ONE, limit=1)
    watch = Watch(lease_s=60, step_s=40)
    watching = Reaper(_TWO, tmp_path, daemons, leases, watch, clock, 20)
    await watching.look_at_leases()
    clock.advance(8 * 3600)
    await watching.look_at_leases()
    assert (await tasks.get(task.id)).state is TaskState.RUNNING
    await leases.renew(_ONE)
    clock.advance(30)
    await watching.look_at_leases()
    assert (await tasks.get(task.id)).state is TaskState.RUNNING


@pytest.mark.usefixtures("both_live")
async def test_a_daemon_does_not_watch_itself(
    tasks: TaskStore, runs: RunStore, reaper: MakeReaper, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    await runs.glance(_ONE, limit=1)
    own = reaper(_ONE)
    for _ in range(4):
        await own.look_at_leases()
        clock.advance(60)
    assert (await tasks.get(task.id)).state is TaskState.RUNNING


async def test_who_is_alone_leaves_the_database_alone(
    tmp_path: Path, daemons: DaemonStore, store: Store, clock: HandClock
) -> None:
    looks = 0

    class Counting(LeaseStore):
        async def running(self) -> Sequence[Held]:
            nonlocal looks
            looks += 1
            return await super().running()

    watch = Watch(lease_s=60, step_s=60)
    mine = Reaper(_ONE, tmp_path, daemons, Counting(store, clock), watch, clock, 1)
    with Presence(tmp_path, _ONE):
        await mine.look_at_leases()
        assert looks == 0
        with Presence(tmp_path, _TWO):
            await mine.look_at_leases()
        assert looks == 1


async def test_a_task_that_kills_its_daemons_is_set_aside(
    tasks: TaskStore, runs: RunStore, leases: LeaseStore, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    successor = (await tasks.enqueue(NewTask(prompt="y", after=(task.id,)))).task
    for number in range(3):
        assert len((await runs.glance(_ONE, limit=1)).claims) == 1
        await leases.take_over([_ONE])
        due = (await tasks.get(task.id)).not_before
        assert (due is None) == (number != 1)  # at once, then after a while; the third is the last
        clock.advance(3600)
    ended = await tasks.get(task.id)
    assert (ended.state, ended.retryable) == (TaskState.FAILED, True)
    assert "poison" in (ended.error or "")
    assert [run["ending"] for run in await runs.of_task(task.id)] == ["lost", "lost", "poison"]
    assert (await tasks.get(successor.id)).state is TaskState.FAILED
    assert (await tasks.retry(task.id)).state is TaskState.PENDING


async def test_a_passing_error_is_tried_again_later_and_each_error_is_kept(
    tasks: TaskStore, runs: RunStore, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    for number in range(3):
        (claim,) = (await runs.glance(_ONE, limit=1)).claims
        assert claim.run.attempt == number + 1
        ending = Ending("failed", TaskState.FAILED, error=f"error {number}", transient=True)
        await runs.end(claim.run, ending)
        now = await tasks.get(task.id)
        if number < 2:
            assert now.state is TaskState.PENDING
            assert now.not_before is not None
            assert not (await runs.glance(_ONE, limit=1)).claims
            clock.advance(600)
    assert (now.state, now.error) == (TaskState.FAILED, "error 2")
    errors = [run["error"] for run in await runs.of_task(task.id)]
    assert errors == ["error 0", "error 1", "error 2"]


async def test_waiting_is_no_failed_attempt(
    tasks: TaskStore, runs: RunStore, clock: HandClock
) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    for _ in range(5):
        (claim,) = (await runs.glance(_ONE, limit=1)).claims
        assert claim.run.attempt == 1
        await runs.end(claim.run, Ending("waiting", TaskState.WAITING, waiting_reason="later"))
        await tasks.resume(task.id)
        clock.advance(1)


async def test_the_reaper_ends_when_it_is_cancelled(reaper: MakeReaper) -> None:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(reaper(_ONE).run)
            group.cancel_scope.cancel()
