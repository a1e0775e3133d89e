"""The scheduler under a clock that tests move: what fires, what does not, and what stands where."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from agentd.config_sections import SchedulesConfig
from agentd.daemon.gate import Gate
from agentd.daemon.scheduler import Scheduler
from agentd.domain.ids import DaemonId, SessionId
from agentd.domain.schedule import Decided, Missed, NewSchedule, Outcome, Overlap, Schedule
from agentd.domain.task import TaskState
from agentd.schedules.scheduling import Scheduling
from agentd.store.runs import Ending, RunStore
from agentd.store.schedules import ScheduleStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.clock import HandClock

_ONE, _TWO = DaemonId("daemon-1"), DaemonId("daemon-2")
_HOUR = 3600.0


@pytest.fixture
def schedules(store: Store, clock: HandClock) -> ScheduleStore:
    return ScheduleStore(store, clock)


@pytest.fixture
def scheduling(store: Store, clock: HandClock) -> Scheduling:
    return Scheduling(store, clock, SchedulesConfig.model_validate({}))


Make = Callable[..., Scheduler]


@pytest.fixture
def make(schedules: ScheduleStore, clock: HandClock, tmp_path: Path) -> Make:
    def made(daemon_id: DaemonId = _ONE, most: int = 100) -> Scheduler:
        gate = Gate(tmp_path, timeout_s=5)
        return Scheduler(daemon_id, schedules, clock, anyio.Event(), gate.ask, 60, most)

    return made


@asynccontextmanager
async def at_work(*schedulers: Scheduler) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        for each in schedulers:
            group.start_soon(each.run)
        yield
        group.cancel_scope.cancel()


async def ledger(
    schedules: ScheduleStore, schedule: Schedule, lines: int, *schedulers: Scheduler
) -> Sequence[Decided]:
    """The ledger once it has so many lines, the oldest first."""
    with anyio.fail_after(10):
        while True:
            found = await schedules.ledger(schedule.id, limit=1000)
            if len(found) >= lines:
                return found[::-1]
            for each in schedulers:
                each.notice()
            await anyio.sleep(0.01)


@pytest.mark.requirement("S2-27")
async def test_the_prompt_is_put_into_the_session_when_its_time_comes(
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    tasks: TaskStore,
    clock: HandClock,
) -> None:
    new = NewSchedule("every 1h", "Look at the mail.", session_id=SessionId("main"))
    schedule = await scheduling.add(new)
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        (fired,) = await ledger(schedules, schedule, 1, scheduler)
    task = await tasks.get(fired.task_id)  # pyright: ignore[reportArgumentType]
    assert (task.prompt, task.session_id, task.schedule_id) == (new.prompt, "main", schedule.id)
    assert fired.occurrence.outcome is Outcome.FIRED
    assert fired.occurrence.due_at == schedule.next_due
    assert fired.daemon_id == _ONE
    after = await schedules.get(schedule.id)
    assert after.next_due == fired.occurrence.due_at + timedelta(hours=1)


async def test_however_many_daemons_run_each_occurrence_fires_once(
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    tasks: TaskStore,
    clock: HandClock,
) -> None:
    every = [await scheduling.add(NewSchedule(f"every {n + 1}h", f"{n}")) for n in range(5)]
    crowd = [make(DaemonId(f"daemon-{number}")) for number in range(4)]
    async with at_work(*crowd):
        for hour in range(1, 7):
            clock.advance(_HOUR)
            for number, each in enumerate(every):
                await ledger(schedules, each, hour // (number + 1), *crowd)
    fired = {each.prompt: await schedules.ledger(each.id) for each in every}
    assert {prompt: len(lines) for prompt, lines in fired.items()} == {
        "0": 6, "1": 3, "2": 2, "3": 1, "4": 1
    }  # fmt: skip
    assert len(await tasks.list(limit=100)) == 13


@pytest.mark.parametrize(
    ("missed", "outcomes", "times"),
    [
        (Missed.ONCE, ["missed", "fired"], [8, 1]),
        (Missed.SKIP, ["missed"], [9]),
        (Missed.ALL, ["missed", "fired", "fired", "fired"], [6, 1, 1, 1]),
    ],
)
async def test_what_was_due_while_nobody_was_there(
    missed: Missed,
    outcomes: list[str],
    times: list[int],
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    clock: HandClock,
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x", missed=missed))
    clock.advance(9.5 * _HOUR)
    scheduler = make(most=3)
    async with at_work(scheduler):
        lines = await ledger(schedules, schedule, len(outcomes), scheduler)
    assert [str(line.occurrence.outcome) for line in lines] == outcomes
    assert [line.occurrence.times for line in lines] == times


async def test_a_machine_that_slept_makes_up_for_it(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    """The time of day has moved on; the steady clock has not, as under suspension."""
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    scheduler = make()
    async with at_work(scheduler):
        clock.jump(5 * _HOUR)
        missed, fired = await ledger(schedules, schedule, 2, scheduler)
    assert (missed.occurrence.times, fired.occurrence.outcome) == (4, Outcome.FIRED)


async def test_a_clock_that_is_set_back_fires_nothing_twice(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        await ledger(schedules, schedule, 1, scheduler)
        clock.jump(-_HOUR)
        clock.advance(_HOUR)
        scheduler.notice()
        clock.advance(_HOUR)
        lines = await ledger(schedules, schedule, 2, scheduler)
    assert len({line.occurrence.due_at for line in lines}) == len(lines) == 2


async def test_while_the_last_run_is_unfinished_the_next_can_be_skipped(
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    runs: RunStore,
    tasks: TaskStore,
    clock: HandClock,
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x", overlap=Overlap.SKIP))
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        (first,) = await ledger(schedules, schedule, 1, scheduler)
        clock.advance(_HOUR)
        second = (await ledger(schedules, schedule, 2, scheduler))[-1]
        assert second.occurrence.outcome is Outcome.SKIPPED
        assert str(first.task_id) in (second.occurrence.reason or "")
        (claim,) = (await runs.glance(_ONE, limit=1)).claims
        await runs.end(claim.run, Ending("completed", TaskState.COMPLETED))
        clock.advance(_HOUR)
        third = (await ledger(schedules, schedule, 3, scheduler))[-1]
    assert third.occurrence.outcome is Outcome.FIRED
    assert len(await tasks.list()) == 2


async def test_a_gate_that_says_no_makes_no_task(
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    tasks: TaskStore,
    clock: HandClock,
    tmp_path: Path,
) -> None:
    gate = "echo nothing new; test -e flag"
    schedule = await scheduling.add(NewSchedule("every 1h", "x", gate=gate))
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        (first,) = await ledger(schedules, schedule, 1, scheduler)
        assert first.occurrence.outcome is Outcome.GATED
        assert first.occurrence.reason == "its gate exited with 1: nothing new"
        assert not await tasks.list()
        (tmp_path / "flag").touch()
        clock.advance(_HOUR)
        second = (await ledger(schedules, schedule, 2, scheduler))[-1]
    assert second.occurrence.outcome is Outcome.FIRED


async def test_a_gate_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    why = await Gate(tmp_path, timeout_s=0.5).ask(f"sleep 60 & echo $! > {pids}; wait")
    assert why is not None
    assert "longer than 0.5 s" in why
    with anyio.fail_after(5):
        while Path(f"/proc/{pids.read_text().strip()}/stat").exists():
            if " Z " in Path(f"/proc/{pids.read_text().strip()}/stat").read_text():
                break
            await anyio.sleep(0.01)


async def test_a_gate_sees_no_key_of_agentd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    why = await Gate(tmp_path, timeout_s=5).ask('echo "key: $ANTHROPIC_API_KEY."; exit 3')
    assert why == "its gate exited with 3: key: ."


async def test_what_can_not_be_read_is_reported_and_the_others_go_on(
    make: Make,
    schedules: ScheduleStore,
    scheduling: Scheduling,
    store: Store,
    clock: HandClock,
) -> None:
    broken = await scheduling.add(NewSchedule("every 1h", "x"))
    good = await scheduling.add(NewSchedule("every 1h", "y"))
    async with store.transaction() as conn:
        await conn.execute(
            "UPDATE schedules SET timezone = 'Mars/Phobos', expression = '@daily' WHERE id = $id",
            id=broken.id,
        )
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        await ledger(schedules, good, 1, scheduler)
        clock.advance(_HOUR)
        await ledger(schedules, good, 2, scheduler)
    assert not await schedules.ledger(broken.id)
    (why,) = (await scheduling.explain(broken.id)).why
    assert "'Mars/Phobos' is no time zone" in why
    assert {each.id for each in await scheduling.list()} == {broken.id, good.id}


async def test_a_trigger_by_hand_does_not_consume_the_next_occurrence(
    schedules: ScheduleStore, scheduling: Scheduling, tasks: TaskStore
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    fired = await scheduling.trigger(schedule.id)
    assert (await tasks.get(fired.task_id)).prompt == "x"  # pyright: ignore[reportArgumentType]
    assert await schedules.get(schedule.id) == schedule
    assert [line.occurrence.reason for line in await schedules.ledger(schedule.id)] == [
        "triggered by hand"
    ]


async def test_what_was_due_while_it_was_off_stays_undone(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    await scheduling.disable(schedule.id)
    clock.advance(10.5 * _HOUR)
    enabled = await scheduling.enable(schedule.id)
    assert enabled.next_due == clock.now() + timedelta(hours=0.5)
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR / 2)
        (fired,) = await ledger(schedules, schedule, 1, scheduler)
    assert fired.occurrence.due_at == enabled.next_due


async def test_a_change_between_the_look_and_the_shot_wins(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    clock.advance(_HOUR)
    await scheduling.disable(schedule.id)
    assert await schedules.settle(schedule, [], clock.now(), _ONE) is None


async def test_a_moment_fires_once_and_is_done(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    due = (clock.now() + timedelta(hours=1)).isoformat()
    schedule = await scheduling.add(NewSchedule(due, "x"))
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(2 * _HOUR)
        await ledger(schedules, schedule, 1, scheduler)
        clock.advance(48 * _HOUR)
        scheduler.notice()
    assert (await schedules.get(schedule.id)).next_due is None
    assert len(await schedules.ledger(schedule.id)) == 1
    assert "does not fire any more" in (await scheduling.explain(schedule.id)).why[0]


async def test_an_occurrence_that_is_due_a_second_time_is_passed_over(
    make: Make, schedules: ScheduleStore, scheduling: Scheduling, clock: HandClock
) -> None:
    """The clock was set back, and then the schedule was switched off and on."""
    schedule = await scheduling.add(NewSchedule("every 1h", "x"))
    scheduler = make()
    async with at_work(scheduler):
        clock.advance(_HOUR)
        await ledger(schedules, schedule, 1, scheduler)
        clock.jump(-_HOUR / 2)
        await scheduling.disable(schedule.id)
        await scheduling.enable(schedule.id)
        for _ in range(2):
            clock.advance(_HOUR)
            scheduler.notice()
        lines = await ledger(schedules, schedule, 2, scheduler)
    assert len({line.occurrence.due_at for line in lines}) == len(lines)


async def test_a_gate_that_no_shell_can_take_makes_no_task_and_harms_nobody(
    tmp_path: Path,
) -> None:
    assert "could not be run" in (await Gate(tmp_path, timeout_s=5).ask("echo \0") or "")


async def test_a_gate_that_leaves_something_running_has_still_said_yes(tmp_path: Path) -> None:
    gate = Gate(tmp_path, timeout_s=30)
    with anyio.fail_after(10):
        assert await gate.ask("sleep 60 & exit 0") is None
        assert await gate.ask("setsid sleep 5 & exit 0") is None
        assert await gate.ask("sleep 60 & echo no; exit 7") == "its gate exited with 7: no"
