"""Money and tokens are counted before they are spent: the worst case of a call is set aside first.

Without a limit nothing is estimated and nothing is written. What became of a call that never came
back nobody knows, so it counts as its worst case; docs/cost.md says when.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import anyio
import structlog

from agentd.agent.journal import Journal
from agentd.agent.ledger import Ledger
from agentd.agent.measure import Measure
from agentd.agent.spent import BudgetSpent, WhenSpent, ending_of, unpriced
from agentd.domain.budget import Amount, Limit, Scope, midnight
from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.ids import new_id
from agentd.domain.usage import Price, Usage
from agentd.models.model import Model, ModelReply, ModelRequest
from agentd.store.budgets import Asked, Reservation, Shortage
from agentd.store.model_calls import ModelCall
from agentd.store.runs import Ending

_log = structlog.get_logger()
_LOOK_AGAIN_S = 0.05  # doubles: calls under way take seconds, and their rest may be enough
_LOOK_AGAIN_MOST_S = 1.0
# Without a response: the request may have been worked on all the same.
_UNANSWERED = frozenset(
    {ModelErrorKind.TIMEOUT, ModelErrorKind.CONNECTION, ModelErrorKind.BROKEN_STREAM}
)


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
    ledger: Ledger
    rules: Rules
    amounts: Mapping[Scope, Amount]
    price: Callable[[str], Price | None]
    stopping: anyio.Event
    schedule_id: str | None = None
    _measure: Measure = field(default_factory=Measure)
    _swept: bool = False

    async def admit(
        self, model: Model, request_for: Callable[[Model], ModelRequest], attempt: int
    ) -> Admitted | None:
        """Let a call through once its worst case fits. None: the daemon stops before.

        The call of what is returned must be made and `counted`, or it must be released. Raises
        BudgetSpent when it does not fit and never will, and RunLost.
        """
        if not self.amounts:
            return Admitted(model, request_for(model))
        delay_s = _LOOK_AGAIN_S
        while not self.stopping.is_set():
            shortage = await self._reserve(model, request_for(model), attempt)
            if isinstance(shortage, Admitted):
                return shortage
            if shortage.for_good:
                cheaper = self.rules.cheaper and self.rules.cheaper()
                if cheaper is None or cheaper.name == model.name:
                    raise BudgetSpent(await self._end(shortage))
                _log.warning("budget: on with a cheaper model", model=cheaper.name)
                model = cheaper
                continue
            with anyio.move_on_after(delay_s):
                await self.stopping.wait()
            delay_s = min(2 * delay_s, _LOOK_AGAIN_MOST_S)
        return None

    async def release(self, admitted: Admitted) -> None:
        """Of a call that was not made after all."""
        if admitted.reservation is not None:
            await self.ledger.store.release(admitted.reservation.id)

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
            if not reply.is_estimated:
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
            ending = unpriced(model.name, in_dollars[0])
            raise BudgetSpent(await self._noted("budget_unpriced", ending))
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
        if not self._swept:
            self._swept = True
            await self.ledger.store.charge_abandoned()
        shortage = await self.ledger.reserve(Asked(run, wanted, self._limits(now)))
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
        return self.price(model.name)

    async def _end(self, shortage: Shortage) -> Ending:
        rules, now = self.rules, self.journal.clock.now()
        return await self._noted(
            "budget_spent",
            ending_of(shortage, rules.when_spent, now, rules.zone, rules.wait_most),
        )

    async def _noted(self, note: str, ending: Ending) -> Ending:
        reason = ending.waiting_reason or ending.error
        _log.warning(note.replace("_", " "), reason=reason)
        await self.journal.note(note, reason=reason)
        return ending


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
