"""The background processes that tools have started: what is known of each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.ids import DaemonId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.store.queries import load

_SQL = load("processes")


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """`ended_at` None: it runs, or its daemon died. `ended_why`: in words, when it was ended."""

    id: str
    session_id: SessionId
    task_id: TaskId
    daemon_id: DaemonId
    command: str
    started_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    ended_why: str | None


class ProcessStore(Capability):
    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def add(self, process_id: str, run: Run, command: str) -> None:
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["add"],
                id=process_id,
                session_id=run.session_id,
                task_id=run.task_id,
                daemon_id=run.daemon_id,
                command=command,
                now=self._clock.now(),
            )

    async def end(self, process_id: str, exit_code: int | None, why: str | None) -> None:
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["end"], id=process_id, exit_code=exit_code, why=why, now=self._clock.now()
            )

    async def get(self, process_id: str) -> ProcessRecord | None:
        async with self._db.transaction() as conn:
            row = await conn.fetch_one(_SQL["get"], id=process_id)
            return ProcessRecord(**row) if row else None

    async def list(
        self, session_id: SessionId | None, *, limit: int = 50
    ) -> Sequence[ProcessRecord]:
        """Newest first; None: of all sessions."""
        async with self._db.transaction() as conn:
            rows = await conn.fetch(_SQL["list"], session_id=session_id, limit=limit)
            return [ProcessRecord(**row) for row in rows]

    async def finished(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """Those of the sessions that have no unfinished task."""
        async with self._db.transaction() as conn:
            rows = await conn.fetch(_SQL["finished_sessions"], session_ids=sorted(sessions))
            return frozenset(SessionId(row["session_id"]) for row in rows)

    async def forget(self, before: datetime) -> Sequence[str]:
        """Remove what ended before that; the ids."""
        async with self._db.transaction() as conn:
            return [str(row["id"]) for row in await conn.fetch(_SQL["forget"], before=before)]
