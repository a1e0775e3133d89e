"""The ledger: a call under a limit is let through only if its worst case still fits.

The check and the reservation are one transaction, and all transactions of a home take turns, so no
two calls ever count on the same rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from agentd.domain.budget import Limit, Scope, Used
from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import RunLost
from agentd.domain.ids import RunId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.store import rows
from agentd.store.connection import Connection, Transactor
from agentd.store.queries import Query, load

_SQL = load("budgets")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of one call. `cost_microusd` None: its model has no known price."""

    id: str
    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    schedule_id: str | None
    model: str
    attempt: int
    started_at: datetime
    input_tokens: int
    output_tokens: int
    cost_microusd: int | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Shortage:
    """The limit that a call would break. `for_good`: whatever the calls under way will cost."""

    limit: Limit
    used: Used
    wanted: Reservation
    in_tokens: bool
    for_good: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a run wants to make, and the limits that apply to it."""

    run: Run
    wanted: Reservation
    limits: Sequence[Limit]


class BudgetStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def reserve(self, asked: Sequence[Asked]) -> Sequence[Shortage | RunLost | None]:
        """Set the worst cases of calls aside, in their order; on disk when this returns.

        For each what speaks against it: a limit, or that its run has lost its task; nothing is
        reserved for it then.
        """
        async with self._db.transaction() as conn:
            granted, answers = await _decide(conn, asked)
            if any(answers) and await _charge_abandoned(conn):
                granted, answers = await _decide(conn, asked)
            # No fence: a reservation that is dropped at the commit would change the sums that
            # others of the same commit have read already.
            await conn.execute_many(_SQL["reserve"], [_parameters(each) for each in granted])
            return answers

    async def charge_abandoned(self) -> int:
        """Count the calls of runs that are over at their worst case; how many there were."""
        async with self._db.transaction() as conn:
            return await _charge_abandoned(conn)

    async def release(self, reservation_id: str) -> None:
        """Give back what was set aside for a call that was not made."""
        async with self._db.transaction() as conn:
            await conn.execute(_SQL["settle"], ids=[reservation_id])

    async def used(self, limits: Sequence[Limit]) -> Sequence[Used]:
        """What each scope has used, in their order."""
        if not limits:
            return []
        async with self._db.transaction() as conn:
            found = await conn.fetch_each(*(_question(limit) for limit in limits))
            return [_totals(row) for (row,) in found]

    async def waiting(self) -> Sequence[rows.Row]:
        """The tasks that wait for a limit, which their reason names, and their own limits."""
        async with self._db.transaction() as conn:
            return await conn.fetch(_SQL["waiting"])

    async def raise_limits(
        self, task_id: TaskId, max_cost_microusd: int | None, max_total_tokens: int | None
    ) -> None:
        """Of a task that is not running; None leaves one as it is."""
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["raise_limits"],
                id=task_id,
                max_cost_microusd=max_cost_microusd,
                max_total_tokens=max_total_tokens,
                now=self._clock.now(),
            )


async def _decide(
    conn: Connection, asked: Sequence[Asked]
) -> tuple[list[Reservation], list[Shortage | RunLost | None]]:
    """Which calls fit, each after those before it, and what speaks against the others."""
    scopes = list({_scope(limit): limit for each in asked for limit in each.limits}.values())
    ids = list({each.run.task_id for each in asked})
    running, *found = await conn.fetch_each(
        (_SQL["running"], {"ids": ids}), *(_question(limit) for limit in scopes)
    )
    owners = {(row["id"], row["token"]) for row in running}
    used = {_scope(limit): _totals(row) for limit, (row,) in zip(scopes, found, strict=True)}
    granted: list[Reservation] = []
    answers: list[Shortage | RunLost | None] = []
    for each in asked:
        if (each.run.task_id, each.run.token) not in owners:
            answers.append(RunLost(each.run.task_id, each.run.id))
            continue
        so_far = [used[_scope(limit)] for limit in each.limits]
        answers.append(_shortage(each.wanted, each.limits, so_far))
        if answers[-1] is None:
            granted.append(each.wanted)
            for limit in scopes:
                if _concerns(limit, each.wanted):
                    used[_scope(limit)] = _with(used[_scope(limit)], each.wanted)
    return granted, answers


def _scope(limit: Limit) -> tuple[Scope, str | None, datetime | None]:
    """What it is about, without how much."""
    return limit.scope, limit.id, limit.since


def _concerns(limit: Limit, wanted: Reservation) -> bool:
    match limit.scope:
        case Scope.TASK:
            return limit.id == wanted.task_id
        case Scope.SESSION:
            return limit.id == wanted.session_id
        case Scope.SCHEDULE:
            return limit.id == wanted.schedule_id
        case Scope.DAY | Scope.ALL:
            return limit.since is None or limit.since <= wanted.started_at


def _with(used: Used, wanted: Reservation) -> Used:
    return replace(
        used,
        reserved_microusd=used.reserved_microusd + (wanted.cost_microusd or 0),
        reserved_tokens=used.reserved_tokens + wanted.tokens,
    )


async def _charge_abandoned(conn: Connection) -> int:
    ids = [row["id"] for row in await conn.fetch(_SQL["abandoned"])]
    if ids:
        await conn.execute(_SQL["charge"], ids=ids)
        await conn.execute(_SQL["settle"], ids=ids)
    return len(ids)


def _question(limit: Limit) -> tuple[Query, dict[str, Any]]:
    match limit.scope:
        case Scope.TASK | Scope.SESSION | Scope.SCHEDULE:
            return _SQL[f"used_by_{limit.scope}"], {"id": limit.id}
        case Scope.DAY | Scope.ALL:
            return _SQL["used_since"], {"since": limit.since or _BEGINNING}


def _totals(row: rows.Row) -> Used:
    return Used(**{name: int(value) for name, value in row.items()})


def _shortage(
    wanted: Reservation, limits: Sequence[Limit], used: Sequence[Used]
) -> Shortage | None:
    """What speaks against the call; of several the one that lasts longest."""
    found: list[Shortage] = []
    for limit, so_far in zip(limits, used, strict=True):
        amount = limit.amount
        if amount.cost_microusd is not None:
            rest = amount.cost_microusd - so_far.spent_microusd - (wanted.cost_microusd or 0)
            if rest < so_far.reserved_microusd:
                found.append(Shortage(limit, so_far, wanted, in_tokens=False, for_good=rest < 0))
        if amount.tokens is not None:
            rest = amount.tokens - so_far.spent_tokens - wanted.tokens
            if rest < so_far.reserved_tokens:
                found.append(Shortage(limit, so_far, wanted, in_tokens=True, for_good=rest < 0))
    found.sort(key=lambda each: (each.for_good, each.limit.scope is not Scope.DAY), reverse=True)
    return found[0] if found else None


def _parameters(wanted: Reservation) -> dict[str, Any]:
    return {field.name: getattr(wanted, field.name) for field in fields(wanted)}
