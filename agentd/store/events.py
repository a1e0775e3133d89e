"""The journal of each session. Only its run appends; the run counts the sequence numbers itself."""

import json
from collections.abc import Sequence

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.event import Event, LargeResult
from agentd.domain.ids import SessionId, TaskId
from agentd.domain.run import Run
from agentd.store import rows
from agentd.store.connection import Transactor
from agentd.store.large_results import add_large
from agentd.store.model_calls import ModelCall
from agentd.store.queries import load

_SQL = load("events")
_CALLS = load("model_calls")
_BUDGETS = load("budgets")
_SESSIONS = load("sessions")
_RUNS = load("runs")
_TASKS = load("tasks")
_ALL = 1 << 62


class EventStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def of_session(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        """In order, those with `seq` above `after`."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(
                _SQL["since"], session_id=session_id, seq=after, limit=limit or _ALL
            )
            return [rows.event(row) for row in found]

    async def newest(self, session_id: SessionId, limit: int) -> Sequence[Event]:
        """The last `limit` events, in order."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["newest"], session_id=session_id, limit=limit)
            return [rows.event(row) for row in reversed(found)]

    async def append(
        self,
        run: Run,
        events: Sequence[Event],
        *,
        calls: Sequence[ModelCall] = (),
        delivered: Sequence[str] = (),
        opened: bool = False,
        large: Sequence[LargeResult] = (),
    ) -> None:
        """Write `events`, which hold no secrets; on disk when this returns.

        With them, in the same transaction: the model calls that they came from, the ids of messages
        that they deliver, that the task was told what woke it, and results in full. Raises RunLost.
        """
        now = self._clock.now()
        async with self._db.transaction() as conn:
            conn.fence(run)
            written = [_parameters(event) for event in events]
            await conn.execute_many(_SQL["add"], written, is_clean=True)
            for each in large:
                await add_large(conn, each, now)
            await conn.execute_many(_CALLS["add"], [call.parameters() for call in calls])
            if settled := [call.id for call in calls if call.settles]:
                await conn.execute(_BUDGETS["settle"], ids=settled)
            if delivered:
                await conn.execute(_SESSIONS["mark_delivered"], ids=list(delivered), now=now)
            if opened:
                await conn.execute(_RUNS["opened"], id=run.task_id, now=now)

    async def messages(self, session_id: SessionId) -> Sequence[rows.Row]:
        """What was said to the session and is not in its journal yet: id, sender, body."""
        async with self._db.transaction() as conn:
            return await conn.fetch(_SESSIONS["undelivered"], session_id=session_id)

    async def outcomes(self, task_ids: Sequence[TaskId]) -> Sequence[rows.Row]:
        """id, title, state, output and error of tasks, for those that come after them."""
        async with self._db.transaction() as conn:
            return await conn.fetch(_TASKS["outcomes"], ids=list(task_ids))


def _parameters(event: Event) -> dict[str, object]:
    return {
        "session_id": event.session_id,
        "seq": event.seq,
        "kind": str(event.kind),
        "task_id": event.task_id,
        "run_id": event.run_id,
        "body": json.dumps(event.body, ensure_ascii=False, separators=(",", ":")),
        "now": event.created_at,
    }
