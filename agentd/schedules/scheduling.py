"""Schedules as people and models handle them: one implementation for all faces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile

from agentd.config_sections import SchedulesConfig
from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import Refused
from agentd.domain.schedule import Decided, NewSchedule, Schedule
from agentd.schedules.trigger import Trigger, read_trigger
from agentd.store.connection import Transactor
from agentd.store.schedules import ScheduleStore


@dataclass(frozen=True, slots=True)
class Explained:
    """`why`: sentences, the most important one first. `ledger`: the newest first."""

    schedule: Schedule
    why: Sequence[str]
    ledger: Sequence[Decided]


class Scheduling(Capability):
    """Add, list, switch, trigger, simulate, explain."""

    def __init__(self, db: Transactor, clock: Clock, bounds: SchedulesConfig) -> None:
        self._store = ScheduleStore(db, clock)
        self._db = db
        self._clock = clock
        self._bounds = bounds

    @property
    def timezone(self) -> str:
        """Of schedules that name none."""
        return self._bounds.timezone

    async def add(self, new: NewSchedule) -> Schedule:
        """Raises Refused: no such time, never due, too often, too many."""
        now = self._clock.now()
        trigger = self._read(new.expression, new.timezone, now)
        next_due = trigger.next_after(now)
        if next_due is None:
            raise Refused(
                f"{new.expression!r} is never due after now",
                hint="`agentd schedule simulate` shows when an expression is due.",
            )
        async with self._db.transaction() as conn:
            store = ScheduleStore(conn, self._clock)
            if await store.count() >= self._bounds.most:
                raise Refused(
                    f"there are {self._bounds.most} schedules already (schedules.most)",
                    hint="Remove one that is no longer needed: agentd schedule list",
                )
            return await store.add(new, next_due, now)

    async def list(self) -> Sequence[Schedule]:
        """The next to fire first, those that are switched off last."""
        return await self._store.list()

    async def find(self, text: str) -> Schedule:
        """Raises NotFound, Refused."""
        return await self._store.find(text)

    async def remove(self, text: str) -> Schedule:
        """Its ledger and its tasks stay. Raises NotFound, Refused."""
        schedule = await self._store.find(text)
        await self._store.remove(schedule.id)
        return schedule

    async def enable(self, text: str) -> Schedule:
        """What was due while it was off stays undone. Raises NotFound, Refused."""
        schedule = await self._store.find(text)
        if schedule.enabled:
            return schedule
        next_due = trigger_of(schedule).next_after(self._clock.now())
        return await self._store.set_enabled(schedule.id, enabled=True, next_due=next_due)

    async def disable(self, text: str) -> Schedule:
        """Raises NotFound, Refused."""
        schedule = await self._store.find(text)
        return await self._store.set_enabled(schedule.id, enabled=False, next_due=None)

    async def trigger(self, text: str) -> Decided:
        """Fire once, now; the next occurrence stays what it is. Raises NotFound, Refused."""
        return await self._store.trigger(await self._store.find(text))

    def simulate(
        self, expression: str, timezone: str, start: datetime, until: datetime | None, limit: int
    ) -> Sequence[datetime]:
        """When an expression is due later than `start`: at most `limit` times. Raises Refused."""
        return _between(self._read(expression, timezone, start), start, until, limit)

    async def simulate_known(
        self, text: str, start: datetime, until: datetime | None, limit: int
    ) -> Sequence[datetime]:
        """The same for a schedule. Raises NotFound, Refused."""
        return _between(trigger_of(await self._store.find(text)), start, until, limit)

    async def explain(self, text: str, *, limit: int = 10) -> Explained:
        """Why it fires or not. Raises NotFound, Refused."""
        schedule = await self._store.find(text)
        ledger = await self._store.ledger(schedule.id, limit=limit)
        return Explained(schedule, list(self._why(schedule)), ledger)

    def _why(self, schedule: Schedule) -> Sequence[str]:
        try:
            trigger_of(schedule)
        except Refused as error:
            return [f"It does not fire: {error.message}."]
        if not schedule.enabled:
            return ["It does not fire: it is disabled."]
        if schedule.next_due is None:
            return ["It does not fire any more: its last occurrence has passed."]
        now = self._clock.now()
        if schedule.next_due <= now:
            late = round((now - schedule.next_due).total_seconds())
            nobody = "no daemon works on this home, or its gate is being asked"
            return [f"It is due since {late} s and nobody has fired it: {nobody}."]
        return [f"It fires next at {schedule.next_due.isoformat()}."]

    def _read(self, expression: str, timezone: str, anchor: datetime) -> Trigger:
        trigger = read_trigger(expression, timezone, anchor)
        least_s = self._bounds.min_interval_seconds
        if trigger.every_s is not None and trigger.every_s < least_s:
            raise Refused(
                f"{expression!r} is shorter than {least_s:g} s (schedules.min_interval_seconds)"
            )
        return trigger


def trigger_of(schedule: Schedule) -> Trigger:
    """When it is due. Raises Refused if that can not be read (any more)."""
    return read_trigger(schedule.expression, schedule.timezone, schedule.created_at)


def _between(
    trigger: Trigger, start: datetime, until: datetime | None, limit: int
) -> list[datetime]:
    dues = trigger.after(start)
    if until is not None:
        dues = takewhile(lambda due: due <= until, dues)
    return list(islice(dues, limit))
