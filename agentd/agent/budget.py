"""Money and tokens are counted before they are spent: the worst case of a call is set aside first.

Without a limit nothing is estimated and nothing is written. What became of a call that never came
back nobody knows, so it counts as its worst case; docs/cost.md says when.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import anyio
import structlog

from agentd.agent.journal import Journal
from agentd.agent.measure import Measure
from agentd.domain.budget import Amount, Limit, Scope, dollars, midnight, next_midnight
from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.ids import new_id
from agentd.domain.task import TaskState
from agentd.domain.usage import Price, Usage
from agentd.models.model import Model, ModelReply, ModelRequest
from agentd.store.budgets import BudgetStore, Reservation, Shortage
from agentd.store.model_calls import ModelCall
from agentd.store.runs import Ending

_log = structlog.get_logger()
_LOOK_AGAIN_S = 0.05  # doubles: calls under way take seconds, and their rest may be enough
_LOOK_AGAIN_MOST_S = 1.0
# Without a response: the request may have been worked on all the same.
_UNANSWERED = frozenset(
    {ModelErrorKind.TIMEOUT, ModelErrorKind.CONNECTION, ModelErrorKind.BROKEN_STREAM}
)
WhenSpent = Literal["wait", "fail", "cheaper"]


class BudgetSpent(Exception):
    """A signal: the next call would break a limit. `ending`: how the run ends therefore."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        super().__init__(ending.waiting_reason or ending.error)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says. `cheaper`: the model to go on with, when that is the policy."""

    amounts: Mapping[Scope, Amount]
    when_spent: WhenSpent
    cheaper: Callable[[], Model] | None
    zone: ZoneInfo
    wait_most: timedelta


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may be made, with this model. `reservation` None: no limit applies."""

    model: Model
    request: ModelRequest
    reservation: Reservation | None = None


@dataclass(slots=True)
class Budget:
    """The limits of one run. `amounts`: by the rules, with the task's own in their place."""

    journal: Journal
    rules: Rules
    amounts: Mapping[Scope, Amount]
    price: Callable[[str], Price | None]
    stopping: anyio.Event
    schedule_id: str | None = None
    _measure: Measure = field(default_factory=Measure)

    async def admit(self, model: Model, request: ModelRequest, attempt: int) -> Admitted | None:
        """Let a call through once its worst case fits. None: the daemon stops before.

        Raises BudgetSpent when it does not fit and never will, RunLost.
        """
        if not self.amounts:
            return Admitted(model, request)
        delay_s = _LOOK_AGAIN_S
        while not self.stopping.is_set():
            shortage = await self._reserve(model, request, attempt)
            if isinstance(shortage, Admitted):
                return shortage
            if shortage.for_good:
                cheaper = self.rules.cheaper and self.rules.cheaper()
                if cheaper is None or cheaper.name == model.name:
                    raise BudgetSpent(await self._end(shortage))
                _log.warning("budget: on with a cheaper model", model=cheaper.name)
                model, request = cheaper, replace(request, model=_bare(cheaper.name))
                continue
            with anyio.move_on_after(delay_s):
                await self.stopping.wait()
            delay_s = min(2 * delay_s, _LOOK_AGAIN_MOST_S)
        return None

    def counted(
        self,
        call: ModelCall,
        admitted: Admitted,
        reply: ModelReply | None = None,
        error: ModelError | None = None,
    ) -> ModelCall:
        """The row of a call as it takes the place of its reservation."""
        call = replace(call, schedule_id=self.schedule_id)
        reserved = admitted.reservation
        if reserved is None:
            return call
        # The day of the reservation is the day that pays, whenever the reply comes.
        call = replace(call, id=reserved.id, started_at=reserved.started_at, settles=True)
        if reply is not None:
            self._measure.learn(admitted.request, reply.usage)
            if call.cost_microusd is None and (price := self._price(admitted.model)):
                return replace(call, cost_microusd=price.cost_microusd(reply.usage))
        elif error is not None and may_have_cost(error):
            return replace(
                call,
                cache_write_tokens=reserved.input_tokens,
                output_tokens=reserved.output_tokens,
                cost_microusd=reserved.cost_microusd,
            )
        return call

    async def _reserve(
        self, model: Model, request: ModelRequest, attempt: int
    ) -> Admitted | Shortage:
        run, now = self.journal.run, self.journal.clock.now()
        price = self._price(model)
        in_dollars = [s for s, each in self.amounts.items() if each.cost_microusd is not None]
        if price is None and in_dollars:
            raise BudgetSpent(await self._refuse_unpriced(model, in_dollars[0]))
        worst = Usage(
            cache_write_tokens=self._measure.input_tokens(request),
            output_tokens=request.max_tokens,
        )
        wanted = Reservation(
            id=new_id(),
            session_id=run.session_id,
            task_id=run.task_id,
            run_id=run.id,
            schedule_id=self.schedule_id,
            model=model.name,
            attempt=attempt,
            started_at=now,
            input_tokens=worst.cache_write_tokens,
            output_tokens=worst.output_tokens,
            cost_microusd=dearest(price, worst) if price else None,
        )
        ledger = BudgetStore(self.journal.db, self.journal.clock)
        shortage = await ledger.reserve(run, wanted, self._limits(now))
        return shortage or Admitted(model, request, wanted)

    def _limits(self, now: datetime) -> list[Limit]:
        run = self.journal.run
        ids = {
            Scope.TASK: run.task_id,
            Scope.SESSION: run.session_id,
            Scope.SCHEDULE: self.schedule_id,
        }
        return [
            Limit(scope, amount, ids.get(scope), midnight(now, self.rules.zone, scope))
            for scope, amount in self.amounts.items()
            if scope is not Scope.SCHEDULE or self.schedule_id is not None
        ]

    def _price(self, model: Model) -> Price | None:
        return self.price(_bare(model.name)) or self.price(model.name)

    async def _end(self, shortage: Shortage) -> Ending:
        text = explain(shortage)
        _log.warning("budget spent", reason=text)
        await self.journal.note("budget_spent", reason=text)
        if self.rules.when_spent == "fail":
            return Ending("failed", TaskState.FAILED, error=text)
        now = self.journal.clock.now()
        wake_at = now + self.rules.wait_most
        if shortage.limit.scope is Scope.DAY and not _never_fits(shortage):
            wake_at = next_midnight(now, self.rules.zone)
        return Ending("waiting", TaskState.WAITING, waiting_reason=text, wake_at=wake_at)

    async def _refuse_unpriced(self, model: Model, scope: Scope) -> Ending:
        text = (
            f"no price is known for {model.name}, and a limit in dollars applies ({scope.key()}): "
            "set models.prices for it, or limit tokens instead"
        )
        await self.journal.note("budget_unpriced", reason=text)
        return Ending("failed", TaskState.FAILED, error=text)


def amounts_of(rules: Rules, own: Amount) -> dict[Scope, Amount]:
    """The limits that apply: what the task says of itself goes before the configuration."""
    amounts = dict(rules.amounts)
    general = amounts.get(Scope.TASK, Amount())
    amounts[Scope.TASK] = Amount(
        general.cost_microusd if own.cost_microusd is None else own.cost_microusd,
        general.tokens if own.tokens is None else own.tokens,
    )
    return {scope: amount for scope, amount in amounts.items() if amount}


def dearest(price: Price, worst: Usage) -> int:
    """The cost if all input is of its dearest kind; that is writing it into the cache, mostly."""
    per_token = max(price.input, price.cache_write, price.cache_read)
    return replace(price, cache_write=per_token).cost_microusd(worst)


def may_have_cost(error: ModelError) -> bool:
    """Whether the provider may charge for it: it broke off, or nobody knows whether it began.

    An error status is the provider's word that there is no reply to pay for.
    """
    if error.unsent:
        return False
    return error.kind in _UNANSWERED if error.status is None else error.status < 400


def explain(shortage: Shortage) -> str:
    """For the person who finds the task waiting."""
    limit, used, wanted = shortage.limit, shortage.used, shortage.wanted
    if shortage.in_tokens:
        most, spent, next_ = limit.amount.tokens, used.spent_tokens, wanted.tokens
        words = [f"{value or 0:,} tokens" for value in (most, spent, next_)]
    else:
        most, spent = limit.amount.cost_microusd, used.spent_microusd
        words = [dollars(value or 0) for value in (most, spent, wanted.cost_microusd)]
    key = limit.scope.key(in_tokens=shortage.in_tokens)
    return (
        f"budget: the limit {key} is {words[0]}, {words[1]} are spent, and the next call may take "
        f"up to {words[2]}"
    )


def _never_fits(shortage: Shortage) -> bool:
    """Not even with nothing spent."""
    amount, wanted = shortage.limit.amount, shortage.wanted
    if shortage.in_tokens:
        return wanted.tokens > (amount.tokens or 0)
    return (wanted.cost_microusd or 0) > (amount.cost_microusd or 0)


def _bare(name: str) -> str:
    return name.partition(":")[2]
