"""The `agentd run` processes of this home."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.ids import DaemonId
from agentd.store.connection import Transactor
from agentd.store.queries import load

_SQL = load("daemons")


@dataclass(frozen=True, slots=True)
class DaemonRecord:
    """`running`: tasks that it works on now. `stopped_at` None: it did not say goodbye."""

    id: DaemonId
    pid: int
    host: str
    version: str
    concurrency: int
    started_at: datetime
    stopped_at: datetime | None
    running: int


class DaemonStore(Capability):
    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def register(
        self, daemon_id: DaemonId, *, pid: int, host: str, version: str, concurrency: int
    ) -> None:
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["add"],
                id=daemon_id,
                pid=pid,
                host=host,
                version=version,
                concurrency=concurrency,
                now=self._clock.now(),
            )

    async def stopped(self, daemon_ids: Sequence[DaemonId]) -> None:
        async with self._db.transaction() as conn:
            for each in daemon_ids:
                await conn.execute(_SQL["stop"], id=each, now=self._clock.now())

    async def not_stopped(self) -> Sequence[DaemonId]:
        """Those that run, or ended without saying so."""
        async with self._db.transaction() as conn:
            return [DaemonId(row["id"]) for row in await conn.fetch(_SQL["not_stopped"])]

    async def list(self, *, include_stopped: bool, limit: int = 50) -> Sequence[DaemonRecord]:
        """Newest first."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["list"], all=include_stopped, limit=limit)
            return [DaemonRecord(**row) for row in found]
