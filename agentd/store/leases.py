"""Who owns which running task: renewing, and taking over from daemons that died or hang."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from agentd.domain.backoff import Terms
from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.ids import DaemonId, RunId, TaskId
from agentd.domain.run import Run
from agentd.domain.task import TaskState
from agentd.store import rows
from agentd.store.connection import Connection, Transactor
from agentd.store.endings import fail_successors, record_run
from agentd.store.queries import load

_SQL = load("runs")
_DIED = "the daemon ended"
_HUNG = "the daemon did not renew its lease"
_POISON = "set aside as poison: {attempts} attempts in a row ended with their daemon"


@dataclass(frozen=True, slots=True)
class Held:
    """A running task. `until` is what its daemon wrote last, in that daemon's time."""

    run: Run
    until: datetime | None
    max_attempts: int | None
    to_be_cancelled: bool


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of a task whose run was lost."""

    state: TaskState
    error: str | None = None
    not_before: datetime | None = None


class LeaseStore(Capability):
    def __init__(self, db: Transactor, clock: Clock, terms: Terms | None = None) -> None:
        self._db = db
        self._clock = clock
        self._terms = terms or Terms()

    async def renew(self, daemon_id: DaemonId) -> frozenset[tuple[TaskId, int]]:
        """Say that the daemon lives. Task and token of each run that is still its own."""
        until = self._clock.now() + timedelta(seconds=self._terms.lease_s)
        async with self._db.transaction() as conn:
            kept = await conn.fetch(_SQL["renew"], daemon_id=daemon_id, lease_until=until)
            return frozenset((TaskId(row["id"]), row["token"]) for row in kept)

    async def running(self) -> Sequence[Held]:
        """Every running task, of all daemons."""
        async with self._db.transaction() as conn:
            return await _running(conn)

    async def take_over(
        self,
        dead: Collection[DaemonId],
        expired: Mapping[RunId, datetime | None] = MappingProxyType({}),
    ) -> Sequence[TaskId]:
        """Let go on what daemons that died, or that no longer renew these runs, left running.

        `expired`: with the end of the lease that was seen; who has renewed since keeps its run.
        Such an attempt counts; a task that has none left has failed.
        """
        now = self._clock.now()
        async with self._db.transaction() as conn:
            running = await _running(conn)
            lost = [
                each
                for each in running
                if each.run.daemon_id in dead
                or (each.run.id in expired and expired[each.run.id] == each.until)
            ]
            for each in lost:
                why = _DIED if each.run.daemon_id in dead else _HUNG
                await self._take(conn, each, why, now)
            if lost:
                conn.announce()
            return [each.run.task_id for each in lost]

    async def _take(self, conn: Connection, lost: Held, why: str, now: datetime) -> None:
        fate = self._fate(lost, now)
        ended = fate.state is not TaskState.PENDING
        await conn.execute(
            _SQL["take_over"],
            id=lost.run.task_id,
            token=lost.run.token,
            state=str(fate.state),
            error=fate.error or why,
            retryable=fate.state is TaskState.FAILED,
            not_before=fate.not_before,
            finished_at=now if ended else None,
            now=now,
        )
        ending = "poison" if fate.state is TaskState.FAILED else "lost"
        await record_run(conn, lost.run, ending, fate.error or why, now)
        if ended:
            how = f"{fate.state}: {fate.error}"
            await fail_successors(conn, [lost.run.task_id], how, now)

    def _fate(self, lost: Held, now: datetime) -> _Fate:
        if lost.to_be_cancelled:
            return _Fate(TaskState.CANCELLED, "cancelled by a person")
        attempt = lost.run.attempt
        delay_s = self._terms.attempts.after_loss(attempt, lost.max_attempts)
        if delay_s is None:
            return _Fate(TaskState.FAILED, _POISON.format(attempts=attempt))
        later = now + timedelta(seconds=delay_s) if delay_s else None
        return _Fate(TaskState.PENDING, not_before=later)


async def _running(conn: Connection) -> list[Held]:
    return [
        Held(
            rows.run(row),
            row["lease_until"],
            row["max_attempts"],
            row["cancel_requested_at"] is not None,
        )
        for row in await conn.fetch(_SQL["running"])
    ]
