"""Moves old sessions from the tables into Parquet files, which views.py puts beside the tables.

A batch counts once its row stands in `archives`, which it gets in the transaction in which its
sessions leave the tables; its files are on the disk before. So a crash neither loses nor doubles.
DuckDB's own: COPY … TO Parquet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import anyio

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.ids import new_id
from agentd.store.connection import Connection, Transactor
from agentd.store.files import publish
from agentd.store.hub import Row
from agentd.store.instance import quoted
from agentd.store.queries import load

_SQL = load("archives")
_ALL = 1 << 62
# What a session consists of. Predecessors leave before the tasks by which they are found. What its
# model calls have cost stays: limits are sums over all calls, for ever.
TABLES = (
    "task_predecessors",
    "tasks",
    "events",
    "messages",
    "runs",
    "sessions",
    "large_results",
)
_FIRST_TABLES = TABLES[:-1]  # batches that are older than large results have no file of them


@dataclass(frozen=True, slots=True)
class Batch:
    """`tables`: those of which it has a file."""

    id: str
    tables: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pruned:
    sessions: int = 0
    tasks: int = 0
    events: int = 0
    size_bytes: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            self.sessions + other.sessions,
            self.tasks + other.tasks,
            self.events + other.events,
            self.size_bytes + other.size_bytes,
        )


class ArchiveStore(Capability):
    """`folder`: the archive of the home. A batch bounds how long others wait for a transaction."""

    def __init__(
        self,
        db: Transactor,
        clock: Clock,
        folder: Path,
        *,
        batch_sessions: int = 200,
        batch_events: int = 20_000,
    ) -> None:
        self._db = db
        self._clock = clock
        self._folder = folder
        self._batch_sessions = batch_sessions
        self._batch_events = batch_events

    async def would_prune(self, before: datetime) -> Pruned:
        """What `prune` would move now."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["expired"], before=before, limit=_ALL)
            ids = [row["id"] for row in found]
            counts = await conn.fetch(_SQL["events_of"], ids=ids)
            tasks = await conn.fetch_value(_SQL["tasks_of"], ids=ids)
            return Pruned(len(ids), tasks, sum(row["events"] for row in counts))

    async def prune(self, before: datetime) -> Pruned:
        """Move the sessions in which nothing has happened since `before`, batch by batch."""
        total = Pruned()
        while True:
            batch = await self._prune_batch(before)
            if batch is None:
                return total
            total += batch

    async def _prune_batch(self, before: datetime) -> Pruned | None:
        async with self._db.transaction() as conn:
            ids, events = await self._next(conn, before)
            if not ids:
                return None
            batch = new_id()
            tasks = await conn.fetch_value(_SQL["tasks_of"], ids=ids)
            size_bytes = await self._write(conn, batch, ids)
            done = Pruned(len(ids), tasks, events, size_bytes)
            await conn.execute(
                _SQL["add"],
                id=batch,
                sessions=done.sessions,
                tasks=done.tasks,
                events=done.events,
                size_bytes=done.size_bytes,
                ids=ids,
                now=self._clock.now(),
            )
            for table in TABLES:
                await conn.execute(_SQL[f"delete_{table}"], ids=ids)
            await conn.execute(_SQL["delete_programs"], ids=ids)
            return done

    async def _next(self, conn: Connection, before: datetime) -> tuple[list[str], int]:
        """The sessions of one batch, one at the least, and how many events they have."""
        found = await conn.fetch(_SQL["expired"], before=before, limit=self._batch_sessions)
        ids = [row["id"] for row in found]
        counts = {
            row["session_id"]: row["events"] for row in await conn.fetch(_SQL["events_of"], ids=ids)
        }
        taken: list[str] = []
        events = 0
        for each in ids:
            if taken and events + counts.get(each, 0) > self._batch_events:
                break
            taken.append(each)
            events += counts.get(each, 0)
        return taken, events

    async def _write(self, conn: Connection, batch: str, ids: Sequence[str]) -> int:
        """The files of a batch, on the disk when this returns. Their size in bytes."""
        size_bytes = 0
        for table in TABLES:
            path = archive_file(self._folder, table, batch)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The lease is held here: nobody else is writing, so what lies about is of a crash.
            for left in path.parent.glob("*.part"):
                left.unlink(missing_ok=True)
            part = path.with_suffix(".part")
            await conn.fetch(
                f"COPY ({_SQL[table].sql}) TO {quoted(part)} (FORMAT parquet, COMPRESSION zstd)",
                ids=list(ids),
            )
            await anyio.to_thread.run_sync(publish, part, path)
            size_bytes += path.stat().st_size
        return size_bytes


def archive_file(folder: Path, table: str, batch: str) -> Path:
    return folder / table / f"{batch}.parquet"


def archived_batches() -> str:
    """The query for the batches that count; `batches_in` reads its rows."""
    return _SQL["batches"].sql


def batches_in(rows: Iterable[Row]) -> list[Batch]:
    """What `archived_batches` found."""
    return [
        Batch(row["id"], TABLES if row["large_results"] is not None else _FIRST_TABLES)
        for row in rows
    ]
