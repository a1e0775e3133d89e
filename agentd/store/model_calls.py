"""One row for each attempt to get a reply from a model."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from agentd.domain.capability import Capability
from agentd.domain.ids import RunId, SessionId, TaskId
from agentd.store.connection import Transactor
from agentd.store.queries import load

_SQL = load("model_calls")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """`outcome` is "ok" or the kind of error; `cost_microusd` None when the price is unknown.

    `settles`: it takes the place of the reservation of the same id.
    """

    id: str
    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    model: str
    attempt: int
    started_at: datetime
    duration_ms: int
    outcome: str
    stop_reason: str | None = None
    request_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    cost_microusd: int | None = None
    schedule_id: str | None = None
    settles: bool = False

    def parameters(self) -> dict[str, Any]:
        """Of the statement that adds it; `dataclasses.asdict` copies dates, slowly."""
        return {name: getattr(self, name) for name in _COLUMNS}


_COLUMNS = [field.name for field in fields(ModelCall) if field.name != "settles"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Totals of a task. `unpriced`: calls whose model has no known price and count as nothing."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    cost_microusd: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Totals of one task, session, schedule, model or day, called `name`.

    `failed` calls count as nothing, or as `estimated_microusd` of the cost when they broke off.
    """

    name: str
    calls: int
    failed: int
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_microusd: int
    estimated_microusd: int
    unpriced: int

    @property
    def tokens(self) -> int:
        """Of all kinds."""
        read = self.input_tokens + self.cache_write_tokens + self.cache_read_tokens
        return read + self.output_tokens


class ModelCallStore(Capability):
    def __init__(self, db: Transactor) -> None:
        self._db = db

    async def of_task(self, task_id: TaskId) -> Spent:
        async with self._db.transaction() as conn:
            row = await conn.fetch_one(_SQL["of_task"], task_id=task_id)
            assert row is not None  # an aggregate always gives a row
            return Spent(**{name: int(value) for name, value in row.items()})

    async def costs(self, by: str, *, since: datetime, zone: str, limit: int) -> Sequence[Costs]:
        """The dearest first; days with the newest first. `by`: task, …, day (in `zone`), or all."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["costs"], by=by, since=since, zone=zone, limit=limit)
            return [_costs(row) for row in found]

    async def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Of tasks and sessions, by their ids; a task in a session of its own gives it its name."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["titles"], ids=list(ids))
            return {row["id"]: row["title"] for row in found}


def _costs(row: dict[str, Any]) -> Costs:
    return Costs(row.pop("name"), **{name: int(value) for name, value in row.items()})
