"""What runs by the clock. Firing is one transaction: ledger, task and next time, or nothing."""

from collections.abc import Sequence
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import NotFound
from agentd.domain.ids import DaemonId, ScheduleId, SessionId, TaskId, new_id
from agentd.domain.news import News
from agentd.domain.schedule import (
    Decided,
    Missed,
    NewSchedule,
    Occurrence,
    Outcome,
    Overlap,
    Schedule,
)
from agentd.domain.task import NewTask, Priority
from agentd.store.connection import Connection, Transactor
from agentd.store.prefixes import one_of
from agentd.store.queries import load
from agentd.store.rows import Row
from agentd.store.tasks import TaskStore

_SQL = load("schedules")


class ScheduleStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def add(self, new: NewSchedule, next_due: datetime, now: datetime) -> Schedule:
        """`now` becomes its `created_at`, from which intervals count."""
        async with self._db.transaction() as conn:
            schedule_id = ScheduleId(new_id())
            await conn.execute(
                _SQL["add"],
                id=schedule_id,
                expression=new.expression,
                timezone=new.timezone,
                prompt=new.prompt,
                title=new.title,
                session_id=new.session_id,
                priority=str(new.priority),
                model=new.model,
                missed=str(new.missed),
                overlap=str(new.overlap),
                gate=new.gate,
                next_due=next_due,
                created_by=new.created_by,
                now=now,
            )
            conn.announce(News.SCHEDULES)
            return await _get(conn, schedule_id)

    async def count(self) -> int:
        async with self._db.transaction() as conn:
            return int(await conn.fetch_value(_SQL["count"]))

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Raises NotFound."""
        async with self._db.transaction() as conn:
            return await _get(conn, schedule_id)

    async def find(self, text: str) -> Schedule:
        """The one whose id is, starts with or ends with `text`. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            found = await one_of(conn, _SQL["ids_like"], "schedule", text)
            return await _get(conn, ScheduleId(found))

    async def list(self) -> Sequence[Schedule]:
        """Enabled ones first, the next to fire before the others."""
        async with self._db.transaction() as conn:
            return [_schedule(row) for row in await conn.fetch(_SQL["list"])]

    async def awake(self) -> Sequence[Schedule]:
        """Those that fire by themselves, the next to fire first."""
        async with self._db.transaction() as conn:
            return [_schedule(row) for row in await conn.fetch(_SQL["awake"])]

    async def set_enabled(
        self, schedule_id: ScheduleId, *, enabled: bool, next_due: datetime | None
    ) -> Schedule:
        """Raises NotFound."""
        async with self._db.transaction() as conn:
            now = self._clock.now()
            await conn.fetch(
                _SQL["set_enabled"], id=schedule_id, enabled=enabled, next_due=next_due, now=now
            )
            conn.announce(News.SCHEDULES)
            return await _get(conn, schedule_id)

    async def remove(self, schedule_id: ScheduleId) -> None:
        """Its ledger and its tasks stay. Raises NotFound."""
        async with self._db.transaction() as conn:
            if not await conn.fetch(_SQL["remove"], id=schedule_id):
                raise NotFound("schedule", schedule_id)
            conn.announce(News.SCHEDULES)

    async def settle(
        self,
        schedule: Schedule,
        decided: Sequence[Occurrence],
        next_due: datetime | None,
        daemon_id: DaemonId,
    ) -> Sequence[Decided] | None:
        """Write what becomes of the occurrences that are due, with their tasks and the next time.

        None when nothing was written: another daemon was faster, or the schedule was changed.
        """
        async with self._db.transaction() as conn:
            advanced = await conn.fetch(
                _SQL["advance"],
                id=schedule.id,
                due=schedule.next_due,
                updated_at=schedule.updated_at,
                next_due=next_due,
            )
            if not advanced:
                return None
            # After a clock that was set back an occurrence can be due a second time.
            dues = [each.due_at for each in decided]
            known = {
                row["due_at"]
                for row in await conn.fetch(_SQL["decided"], schedule_id=schedule.id, dues=dues)
            }
            fresh = [each for each in decided if each.due_at not in known]
            return [await self._decide(conn, schedule, each, daemon_id) for each in fresh]

    async def trigger(self, schedule: Schedule) -> Decided:
        """Fire now, by hand; what is due by the clock stays due."""
        by_hand = Occurrence(self._clock.now(), Outcome.FIRED, "triggered by hand")
        async with self._db.transaction() as conn:
            return await self._decide(conn, schedule, by_hand, None)

    async def ledger(
        self, schedule_id: ScheduleId, *, limit: int = 20, offset: int = 0
    ) -> Sequence[Decided]:
        """What became of its occurrences, the newest first."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(
                _SQL["ledger"], schedule_id=schedule_id, limit=limit, offset=offset
            )
            return [_decided(row) for row in found]

    async def _decide(
        self,
        conn: Connection,
        schedule: Schedule,
        occurrence: Occurrence,
        daemon_id: DaemonId | None,
    ) -> Decided:
        task_id: TaskId | None = None
        if occurrence.outcome is Outcome.FIRED and schedule.overlap is Overlap.SKIP:
            occurrence = await _unless_busy(conn, schedule, occurrence)
        if occurrence.outcome is Outcome.FIRED:
            enqueued = await TaskStore(conn, self._clock).enqueue(_task_of(schedule))
            task_id = enqueued.task.id
        decided = Decided(schedule.id, occurrence, task_id, daemon_id, self._clock.now())
        await conn.execute(
            _SQL["decide"],
            schedule_id=schedule.id,
            due_at=occurrence.due_at,
            outcome=str(occurrence.outcome),
            reason=occurrence.reason,
            times=occurrence.times,
            through=occurrence.through,
            task_id=task_id,
            daemon_id=daemon_id,
            now=decided.decided_at,
        )
        return decided


async def _unless_busy(conn: Connection, schedule: Schedule, occurrence: Occurrence) -> Occurrence:
    unfinished = await conn.fetch_value(_SQL["unfinished_task"], id=schedule.id)
    if unfinished is None:
        return occurrence
    return Occurrence(occurrence.due_at, Outcome.SKIPPED, f"task {unfinished} is unfinished")


def _task_of(schedule: Schedule) -> NewTask:
    return NewTask(
        prompt=schedule.prompt,
        title=schedule.title,
        priority=schedule.priority,
        session_id=schedule.session_id,
        model=schedule.model,
        schedule_id=schedule.id,
        enqueued_by=f"schedule:{schedule.id}",
    )


async def _get(conn: Connection, schedule_id: ScheduleId) -> Schedule:
    row = await conn.fetch_one(_SQL["get"], id=schedule_id)
    if row is None:
        raise NotFound("schedule", schedule_id, hint="`agentd schedule list` shows what there is.")
    return _schedule(row)


def _schedule(row: Row) -> Schedule:
    return Schedule(
        id=ScheduleId(row["id"]),
        session_id=SessionId(row["session_id"]) if row["session_id"] else None,
        priority=Priority(row["priority"]),
        missed=Missed(row["missed"]),
        overlap=Overlap(row["overlap"]),
        **{name: row[name] for name in _SAME},
    )


def _decided(row: Row) -> Decided:
    outcome = Outcome(row["outcome"])
    return Decided(
        schedule_id=ScheduleId(row["schedule_id"]),
        occurrence=Occurrence(row["due_at"], outcome, row["reason"], row["times"], row["through"]),
        task_id=TaskId(row["task_id"]) if row["task_id"] else None,
        daemon_id=DaemonId(row["daemon_id"]) if row["daemon_id"] else None,
        decided_at=row["decided_at"],
    )


_SAME = (
    "expression",
    "prompt",
    "timezone",
    "title",
    "model",
    "gate",
    "enabled",
    "next_due",
    "created_by",
    "created_at",
    "updated_at",
)
