"""The supervisor and its workers: how many at a time, in which order, and what an error costs."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.agent.loop import Interrupted, Loop
from agentd.app import _scheduler
from agentd.daemon.daemon import Daemon, DaemonSettings
from agentd.daemon.notify import Notifier
from agentd.daemon.supervisor import Supervisor, Until
from agentd.daemon.worker import Assignment, Worker
from agentd.domain.clock import SystemClock
from agentd.domain.errors import RunLost, StoreBusy
from agentd.domain.ids import DaemonId, SessionId
from agentd.domain.task import NewTask, Priority, TaskState
from agentd.store.daemons import DaemonStore
from agentd.store.leases import LeaseStore
from agentd.store.runs import Claim, Ending, Glance, RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.conftest import DAEMON
from tests.desk import desk
from tests.messages_turns import DONE, Turn
from tests.watching import make_watchdog


async def test_as_many_tasks_as_allowed_are_worked_at_a_time_and_no_more(tmp_path: Path) -> None:
    """Each reply comes only once three have been asked for together."""
    asked, most = 0, 0
    three = anyio.Event()

    async def behave(_: Mapping[str, Any]) -> Turn:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        if asked == 3:
            three.set()
        await three.wait()
        asked -= 1
        return DONE

    async with desk(tmp_path, behave=behave, daemon__concurrency=3) as at:
        ids = [(await at.enqueue(f"Task {number}.")).id for number in range(9)]
        await at.drain()
        states = {(await at.tasks.get(each)).state for each in ids}
    assert states == {TaskState.COMPLETED}
    assert most == 3


async def test_urgent_tasks_first_then_the_oldest_and_one_of_a_session_at_a_time(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, DONE, DONE, daemon__concurrency=1) as at:
        for prompt, priority in (
            ("low", Priority.LOW),
            ("first", Priority.MEDIUM),
            ("second", Priority.MEDIUM),
            ("high", Priority.HIGH),
        ):
            await at.enqueue(prompt, priority=priority)
        await at.drain()
        said = [body["messages"][0]["content"][0]["text"] for body in at.api.requests]
    assert said == ["high", "first", "second", "low"]


async def test_tasks_of_one_session_never_run_together(tmp_path: Path) -> None:
    running = 0

    async def behave(_: Mapping[str, Any]) -> Turn:
        nonlocal running
        running += 1
        assert running == 1
        await anyio.lowlevel.checkpoint()
        running -= 1
        return DONE

    async with desk(tmp_path, behave=behave) as at:
        for number in range(4):
            await at.enqueue(f"Task {number}.", session_id=SessionId("main"))
        await at.drain()
        states = {task.state for task in await at.tasks.list()}
    assert states == {TaskState.COMPLETED}


class _LateAnswer(RunStore):
    """Looks while no worker is free are answered only when the running task has ended."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SystemClock())
        self.looked = anyio.Event()
        self.ended = anyio.Event()

    async def glance(self, daemon_id: DaemonId, *, limit: int) -> Glance:
        glance = await super().glance(daemon_id, limit=limit)
        if limit == 0:
            self.looked.set()
            await self.ended.wait()
        return glance


class _UntilLooked(Worker):
    """Ends its task while the supervisor looks at the queue."""

    async def work(self, assignment: Assignment) -> None:
        assert isinstance(self.runs, _LateAnswer)
        await self.runs.looked.wait()
        await self.runs.end(assignment.claim.run, Ending("completed", TaskState.COMPLETED))
        self.runs.ended.set()


def supervisor(
    runs: RunStore, worker: Worker, *, until: Until, untouched: Callable[[], bool]
) -> Supervisor:
    return Supervisor(
        daemon_id=DAEMON,
        runs=runs,
        worker=worker,
        clock=SystemClock(),
        stopping=anyio.Event(),
        untouched=untouched,
        concurrency=1,
        poll_s=0.01,
        drain_s=1,
        until=until,
    )


async def test_a_task_that_ends_during_a_look_is_no_reason_to_stop(
    tmp_path: Path, store: Store, tasks: TaskStore
) -> None:
    await tasks.enqueue(NewTask(prompt="first"))
    await tasks.enqueue(NewTask(prompt="second"))
    runs = _LateAnswer(store)
    worker = _UntilLooked(runs, lambda _: _FailingLoop(AssertionError()))
    with anyio.fail_after(10):
        await supervisor(runs, worker, until=Until.DRAINED, untouched=lambda: False).run()
    assert {task.state for task in await tasks.list()} == {TaskState.COMPLETED}


async def test_a_database_that_nobody_touches_is_left_alone(
    tmp_path: Path, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, polls = 0, 0
    glance = runs.glance

    async def counted(daemon_id: DaemonId, *, limit: int) -> Glance:
        nonlocal looks
        looks += 1
        return await glance(daemon_id, limit=limit)

    def untouched() -> bool:
        nonlocal polls
        polls += 1
        if polls == 20:
            idle.stopping.set()
        return polls != 10

    monkeypatch.setattr(runs, "glance", counted)
    worker = Worker(runs, lambda _: _FailingLoop(AssertionError()))
    idle = supervisor(runs, worker, until=Until.STOPPED, untouched=untouched)
    with anyio.fail_after(10):
        await idle.run()
    assert looks == 2  # at the start, and when somebody had written


class _FailingLoop(Loop):
    """Stands for a loop in which something breaks that nobody thought of."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def work(self) -> None:
        raise self._error


async def _claimed(tasks: TaskStore, runs: RunStore) -> Claim:
    await tasks.enqueue(NewTask(prompt="x", enqueued_by="test"))
    (claim,) = (await runs.glance(DaemonId("d"), limit=1)).claims
    return claim


@pytest.mark.parametrize("error", [KeyError("nobody thought of it"), StoreBusy("locked")])
async def test_an_unexpected_error_ends_the_run_and_not_the_daemon(
    error: Exception, tasks: TaskStore, runs: RunStore
) -> None:
    claim = await _claimed(tasks, runs)
    worker = Worker(runs, lambda _: _FailingLoop(error))
    await worker.work(Assignment(claim, anyio.Event()))
    task = await tasks.get(claim.task.id)
    assert task.state is TaskState.PENDING  # for another attempt
    assert task.not_before is not None
    assert str(error.args[0]) in (task.error or "")


async def test_a_run_that_was_lost_changes_nothing(
    tasks: TaskStore, runs: RunStore, leases: LeaseStore
) -> None:
    claim = await _claimed(tasks, runs)
    await leases.take_over([DaemonId("d")])
    worker = Worker(runs, lambda _: _FailingLoop(RunLost(claim.task.id, claim.run.id)))
    await worker.work(Assignment(claim, anyio.Event()))
    assert (await tasks.get(claim.task.id)).state is TaskState.PENDING


async def test_a_run_that_was_lost_while_it_stops_harms_nobody(
    tasks: TaskStore, runs: RunStore, leases: LeaseStore
) -> None:
    claim = await _claimed(tasks, runs)
    await leases.take_over([DaemonId("d")])
    worker = Worker(runs, lambda _: _FailingLoop(Interrupted()))
    await worker.work(Assignment(claim, anyio.Event()))
    assert (await tasks.get(claim.task.id)).state is TaskState.PENDING


async def test_a_daemon_that_signs_off_leaves_no_task_running(tmp_path: Path) -> None:
    """The one run could not be settled, as when the disk was full; the daemon leaves in peace."""

    class Forgetful(Worker):
        async def work(self, assignment: Assignment) -> None:
            stopping.set()

    async with desk(tmp_path) as at:
        task = await at.enqueue()
        stopping = anyio.Event()
        daemon = Daemon(
            run_directory=at.config.run_path,
            daemons=DaemonStore(at.store, SystemClock()),
            runs=at.runs,
            leases=LeaseStore(at.store, SystemClock()),
            worker=Forgetful(at.runs, lambda _: _FailingLoop(AssertionError())),
            clock=SystemClock(),
            settings=DaemonSettings(concurrency=1, poll_s=0.05, drain_s=1),
            stopping=stopping,
            untouched=at.store.untouched,
            make_scheduler=partial(_scheduler, at.config, at.store, SystemClock()),
            watchdog=make_watchdog(at.config.home, at.store),
            notifier=Notifier(),
        )
        await daemon.run()
        assert (await at.tasks.get(task.id)).state is TaskState.PENDING


async def test_a_task_that_comes_back_to_its_daemon_ends_the_run_that_was_lost(
    store: Store, tasks: TaskStore, runs: RunStore, leases: LeaseStore
) -> None:
    """The lease ran out, and this daemon claims the task again before its next heartbeat."""
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    began: list[int] = []

    class Patient(Worker):
        async def work(self, assignment: Assignment) -> None:
            began.append(assignment.claim.run.token)
            with assignment.scope:
                if len(began) == 1:
                    await leases.take_over([DAEMON])
                    again.notice()
                    await anyio.sleep_forever()
                await runs.end(assignment.claim.run, Ending("completed", TaskState.COMPLETED))

    again = supervisor(
        runs, Patient(runs, lambda _: _FailingLoop(AssertionError())), until=Until.DRAINED,
        untouched=lambda: False,
    )  # fmt: skip
    again.concurrency = 2
    with anyio.fail_after(10):
        await again.run()
    assert (await tasks.get(task.id)).state is TaskState.COMPLETED
    assert began == [1, 3]
