"""Limits of money and tokens, and what a limit is about."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

MICROUSD = 1_000_000


class Scope(StrEnum):
    TASK = "task"
    SESSION = "session"
    SCHEDULE = "schedule"
    DAY = "day"
    ALL = "all"  # the installation, for ever

    def key(self, *, in_tokens: bool = False) -> str:
        """Of the setting, in [budget]."""
        name = "total" if self is Scope.ALL else self.value
        return f"{name}_tokens" if in_tokens else f"{name}_usd"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is allowed; None: as much as it takes. Tokens of all kinds count alike."""

    cost_microusd: int | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.cost_microusd is not None or self.tokens is not None


@dataclass(frozen=True, slots=True)
class Limit:
    """An amount for a task, session or schedule (`id`), for a day (from `since`), or for all."""

    scope: Scope
    amount: Amount
    id: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """What a scope has spent, and what its calls under way may cost at the most."""

    spent_microusd: int
    spent_tokens: int
    reserved_microusd: int
    reserved_tokens: int


def microusd(usd: float) -> int:
    return round(usd * MICROUSD)


def dollars(cost_microusd: int) -> str:
    """As people read it: $1.25; four places below a dollar."""
    return f"${cost_microusd / MICROUSD:,.{2 if cost_microusd >= MICROUSD else 4}f}"


def midnight(now: datetime, zone: ZoneInfo, scope: Scope = Scope.DAY) -> datetime | None:
    """When the day of `now` began in `zone`; None for a scope that knows no days."""
    if scope is not Scope.DAY:
        return None
    local = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return local.astimezone(UTC)


def next_midnight(now: datetime, zone: ZoneInfo) -> datetime:
    # Wall-clock arithmetic: a day of 23 or 25 hours ends at midnight, too.
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return (today + timedelta(days=1)).astimezone(UTC)
