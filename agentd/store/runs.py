"""The queue as a daemon sees it: claim, end, put back. Every write is fenced."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agentd.domain.backoff import Terms
from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.event import storable
from agentd.domain.ids import DaemonId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.domain.task import Task, TaskState
from agentd.store import rows
from agentd.store.connection import Connection, Transactor
from agentd.store.endings import fail_successors, record_run
from agentd.store.queries import load
from agentd.store.tasks import refuse_cycles, with_predecessors

_SQL = load("runs")
_SESSIONS = load("sessions")


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that is now this daemon's. `fresh`: its session has no journal yet."""

    task: Task
    run: Run
    woken_by: str | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class Glance:
    """What a daemon learns from one look at the queue. `next_due`: when it changes by itself."""

    claims: Sequence[Claim] = ()
    to_cancel: frozenset[TaskId] = frozenset()
    with_messages: frozenset[SessionId] = frozenset()
    next_due: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends. `name` is what the run's row says; the rest goes into the task.

    `retryable`: a person may try again. `transient`: so does the daemon, while attempts are left.
    """

    name: str
    state: TaskState
    output: str | None = None
    error: str | None = None
    retryable: bool = False
    waiting_reason: str | None = None
    wake_at: datetime | None = None
    wake_on_task: TaskId | None = None
    transient: bool = False


CANCELLED = Ending("cancelled", TaskState.CANCELLED, error="cancelled by a person")


class RunStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock, terms: Terms | None = None) -> None:
        self._db = db
        self._clock = clock
        self._terms = terms or Terms()

    async def glance(self, daemon_id: DaemonId, *, limit: int) -> Glance:
        """Wake what is due, claim up to `limit` tasks, and see what else happened; all at once."""
        now = self._clock.now()
        async with self._db.transaction() as conn:
            (signs,), page = await conn.fetch_each(
                (_SQL["signs"], {"now": now}),
                (_SQL["candidates"], {"now": now, "limit": limit, "offset": 0}),
            )
            next_wake, next_start = signs["next_wake"], signs["next_start"]
            if signs["awaiting"] or (next_wake is not None and next_wake <= now):
                await conn.execute(_SQL["wake_due"], now=now)
                page = await _candidates(conn, limit, 0, now)
            claims = await self._claim(conn, daemon_id, page, limit, now)
            to_cancel: Sequence[rows.Row] = ()
            if signs["cancelling"]:
                to_cancel = await conn.fetch(_SQL["cancel_requests"], daemon_id=daemon_id)
            messages: Sequence[rows.Row] = ()
            if signs["messages"]:
                messages = await conn.fetch(_SESSIONS["sessions_with_messages"])
            return Glance(
                claims,
                frozenset(TaskId(row["id"]) for row in to_cancel),
                frozenset(SessionId(row["session_id"]) for row in messages),
                min((due for due in (next_wake, next_start) if due is not None), default=None),
            )

    async def end(self, run: Run, ending: Ending) -> None:
        """Close the run and move its task on. Raises RunLost, and CycleRefused for a wait."""
        if ending.transient and await self._try_again(run, ending):
            return
        now = self._clock.now()
        said = storable({"output": ending.output, "error": ending.error})
        async with self._db.transaction() as conn:
            conn.fence(run, ends=True)
            waits = ending.state is TaskState.WAITING
            if waits and await conn.fetch_value(_SQL["to_be_cancelled"], id=run.task_id):
                waits, ending = False, CANCELLED
                said = {"output": None, "error": CANCELLED.error}
            await conn.execute(
                _SQL["end"],
                id=run.task_id,
                token=run.token,
                state=str(ending.state),
                output=said["output"],
                error=said["error"],
                retryable=ending.retryable,
                waiting_reason=ending.waiting_reason,
                wake_at=ending.wake_at,
                wake_on_task=ending.wake_on_task,
                finished_at=None if waits else now,
                now=now,
            )
            if waits:
                await conn.execute(_SQL["wake_if_spoken_to"], id=run.task_id, now=now)
            if ending.wake_on_task is not None:
                await refuse_cycles(conn, run.task_id)
            if ending.state in (TaskState.FAILED, TaskState.CANCELLED):
                how = f"{ending.state}: {said['error']}"
                await fail_successors(conn, [run.task_id], how, now)
            await record_run(conn, run, ending.name, said["error"], now)
            conn.announce()

    async def _try_again(self, run: Run, ending: Ending) -> bool:
        """Put the task back for another attempt; False: it has none left. Raises RunLost."""
        now = self._clock.now()
        said = storable({"output": ending.output, "error": ending.error})
        async with self._db.transaction() as conn:
            own_most = await conn.fetch_value(_SQL["max_attempts"], id=run.task_id)
            delay_s = self._terms.attempts.after_error(run.attempt, own_most)
            if delay_s is None or await conn.fetch(_SQL["to_be_cancelled"], id=run.task_id):
                return False
            conn.fence(run, ends=True)
            await conn.execute(
                _SQL["again"],
                id=run.task_id,
                token=run.token,
                not_before=now + timedelta(seconds=delay_s),
                now=now,
                **said,
            )
            await record_run(conn, run, ending.name, said["error"], now)
            conn.announce()
        return True

    async def put_back(self, run: Run) -> None:
        """Give the task back to the queue unharmed. Raises RunLost."""
        now = self._clock.now()
        async with self._db.transaction() as conn:
            conn.fence(run, ends=True)
            await conn.execute(_SQL["put_back"], id=run.task_id, token=run.token, now=now)
            await record_run(conn, run, "put_back", None, now)
            conn.announce()

    async def of_task(self, task_id: TaskId) -> Sequence[rows.Row]:
        """The ended runs of a task, oldest first, as rows."""
        async with self._db.transaction() as conn:
            return await conn.fetch(_SQL["of_task"], task_id=task_id)

    async def _claim(
        self, conn: Connection, daemon_id: DaemonId, page: list[rows.Row], limit: int, now: datetime
    ) -> list[Claim]:
        first = await _first_of_sessions(conn, page, limit, now)
        if not first:
            return []
        ids = [row["id"] for row in first]
        until = now + timedelta(seconds=self._terms.lease_s)
        await conn.execute(_SQL["claim"], daemon_id=daemon_id, ids=ids, lease_until=until, now=now)
        claimed = [{**row, **_claiming(row, daemon_id, now)} for row in first]
        tasks = await with_predecessors(conn, claimed)
        # The first claim of a task in a session of its own: nothing can stand there yet.
        unknown = {
            each.session_id for each in tasks if each.token > 1 or each.session_id != each.id
        }
        known: set[str] = set()
        if unknown:
            spoken = await conn.fetch(_SQL["sessions_with_events"], ids=list(unknown))
            known = {row["session_id"] for row in spoken}
        return [
            Claim(task, rows.run(row), row["woken_by"], task.session_id not in known)
            for task, row in zip(tasks, claimed, strict=True)
        ]


async def _candidates(conn: Connection, limit: int, offset: int, now: datetime) -> list[rows.Row]:
    return await conn.fetch(_SQL["candidates"], now=now, limit=limit, offset=offset)


async def _first_of_sessions(
    conn: Connection, page: list[rows.Row], limit: int, now: datetime
) -> list[rows.Row]:
    """Up to `limit` claimable tasks, the most urgent of each session. `page`: the first ones.

    Pages double, so that a long row of blocked tasks costs few looks.
    """
    found: dict[str, rows.Row] = {}
    offset, size = 0, limit
    while True:
        blocked = await _blocked(conn, page)
        for row in page:
            if row["id"] not in blocked:
                found.setdefault(row["session_id"], row)
        if len(found) >= limit or len(page) < size:
            return list(found.values())[:limit]
        offset, size = offset + size, 2 * size
        page = await _candidates(conn, size, offset, now)


async def _blocked(conn: Connection, page: list[rows.Row]) -> set[str]:
    ids = [row["id"] for row in page if row["has_predecessors"]]
    return {row["id"] for row in await conn.fetch(_SQL["blocked"], ids=ids)} if ids else set()


def _claiming(row: rows.Row, daemon_id: DaemonId, now: datetime) -> rows.Row:
    """What the statement `claim` writes; reading it back would cost twice as much."""
    token = row["token"] + 1
    return {
        "state": "running",
        "token": token,
        "attempt": row["attempt"] + 1,
        "daemon_id": daemon_id,
        "run_id": f"{row['id']}.{token}",
        "started_at": now,
        "updated_at": now,
    }
