"""What becomes of a task whose next call would break a limit, and when it is tried again."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from agentd.domain.budget import Amount, Scope, dollars, next_midnight
from agentd.domain.clock import Clock
from agentd.domain.errors import NotFound, Refused
from agentd.domain.ids import TaskId
from agentd.domain.task import TaskState
from agentd.store.budgets import BudgetStore, Shortage
from agentd.store.connection import Transactor
from agentd.store.runs import Ending
from agentd.store.tasks import TaskStore

WhenSpent = Literal["wait", "fail", "cheaper"]


class BudgetSpent(Exception):
    """A signal: the next call would break a limit. `ending`: how the run ends therefore."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        super().__init__(ending.waiting_reason or ending.error)


def ending_of(
    shortage: Shortage, policy: WhenSpent, now: datetime, zone: ZoneInfo, wait_most: timedelta
) -> Ending:
    """A day's limit waits for the next day, the others for a person, but not for ever."""
    text = explain(shortage)
    if policy == "fail":
        return Ending("failed", TaskState.FAILED, error=text)
    wake_at = now + wait_most
    if shortage.limit.scope is Scope.DAY and not _never_fits(shortage):
        wake_at = next_midnight(now, zone)
    return Ending("waiting", TaskState.WAITING, waiting_reason=text, wake_at=wake_at)


def unpriced(model: str, scope: Scope) -> Ending:
    """A call that nobody can put a price on is not made where dollars are counted."""
    text = (
        f"no price is known for {model}, and a limit in dollars applies ({scope.key()}): set "
        "models.prices for it, or limit tokens instead"
    )
    return Ending("failed", TaskState.FAILED, error=text)


def explain(shortage: Shortage) -> str:
    """For the person who finds the task waiting."""
    used, wanted = shortage.used, shortage.wanted
    if shortage.in_tokens:
        spent, next_ = f"{used.spent_tokens:,} tokens", f"{wanted.tokens:,} tokens"
    else:
        spent, next_ = dollars(used.spent_microusd), dollars(wanted.cost_microusd or 0)
    limit = _limit(shortage.limit.scope, shortage.limit.amount, in_tokens=shortage.in_tokens)
    return f"{limit}, {spent} are spent, and the next call may take up to {next_}"


async def wake_where_limits_changed(
    db: Transactor, clock: Clock, amounts: Mapping[Scope, Amount]
) -> int:
    """Let tasks try again whose limit is no longer the one that they wait for; how many."""
    waiting = await BudgetStore(db, clock).waiting()
    changed = [
        each["id"]
        for each in waiting
        if not each["waiting_reason"].startswith(
            tuple(
                f"{_limit(scope, amount, in_tokens=in_tokens)},"
                for scope, amount in with_own(
                    amounts, Amount(each["max_cost_microusd"], each["max_total_tokens"])
                ).items()
                for in_tokens in (False, True)
            )
        )
    ]
    woken = 0
    for task_id in changed:
        with suppress(Refused, NotFound):  # somebody else has moved it meanwhile
            await TaskStore(db, clock).resume(TaskId(task_id))
            woken += 1
    return woken


def with_own(general: Mapping[Scope, Amount], own: Amount) -> dict[Scope, Amount]:
    """The limits that apply: what the task says of itself goes before the configuration."""
    task = general.get(Scope.TASK, Amount())
    merged = Amount(
        task.cost_microusd if own.cost_microusd is None else own.cost_microusd,
        task.tokens if own.tokens is None else own.tokens,
    )
    amounts = {**general, Scope.TASK: merged}
    return {scope: amount for scope, amount in amounts.items() if amount}


def _limit(scope: Scope, amount: Amount, *, in_tokens: bool) -> str:
    most = f"{amount.tokens or 0:,} tokens" if in_tokens else dollars(amount.cost_microusd or 0)
    return f"budget: the limit {scope.key(in_tokens=in_tokens)} is {most}"


def _never_fits(shortage: Shortage) -> bool:
    """Not even with nothing spent."""
    amount, wanted = shortage.limit.amount, shortage.wanted
    if shortage.in_tokens:
        return wanted.tokens > (amount.tokens or 0)
    return (wanted.cost_microusd or 0) > (amount.cost_microusd or 0)
