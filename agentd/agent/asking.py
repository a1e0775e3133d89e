"""One reply of the model: every attempt is journaled, and this is the only layer that retries."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import anyio
import structlog

from agentd.agent.budget import Budget
from agentd.agent.failover import Candidate, Failover, Tries
from agentd.agent.journal import Journal
from agentd.domain.errors import ModelError
from agentd.domain.ids import new_id
from agentd.domain.usage import Price, Usage
from agentd.models.breaker import Breaker, BreakerOpen
from agentd.models.model import Model, ModelReply, ModelRequest
from agentd.store.model_calls import ModelCall

_log = structlog.get_logger()
_LOOK_AGAIN_S = 0.5  # another worker may find out sooner that the provider answers again


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply, and the row that counts it; the caller writes both."""

    reply: ModelReply
    call: ModelCall


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks for one run. `stopping` ends a wait between two attempts at once."""

    failover: Failover
    journal: Journal
    price: Callable[[str], Price | None]
    budget: Budget
    breaker_of: Callable[[str], Breaker]
    stopping: anyio.Event

    async def ask(self, request_for: Callable[[Model], ModelRequest]) -> Asked | None:
        """The reply; None when the daemon stops before there is one.

        Raises ModelError, and BudgetSpent when a limit does not allow the call.
        """
        tries = self.failover.begin()
        while (chosen := await self._choose(tries)) is not None:
            admitted = await self.budget.admit(chosen.model, request_for, tries.made + 1)
            if admitted is None:
                return None
            model, asked = admitted.model, chosen
            if model is not chosen.model:  # cheaper, perhaps of another provider
                asked = Candidate(model, self.breaker_of(model.name))
            started_at, started = self.journal.clock.now(), self.journal.clock.monotonic()
            try:
                with asked.breaker.call():
                    await self._note_change(asked)
                    tries.made += 1
                    started = self.journal.clock.monotonic()
                    reply = await model.reply(admitted.request)
            except BreakerOpen:
                # Another worker was faster, and finds out how it stands.
                await self.budget.release(admitted)
                if asked is not chosen:
                    await self._pause(min(asked.breaker.wait_s(), _LOOK_AGAIN_S))
            except ModelError as error:
                delay_s = tries.failed(asked, error)
                outcome = str(error.kind)
                call = self._call(model, tries.made, started_at, started, outcome=outcome)
                call = self.budget.counted(call, admitted, error=error)
                await self._note_failure(error, tries.made, delay_s, call)
                if delay_s is None:
                    raise
                await self._pause(delay_s)
            else:
                call = self._call(model, tries.made, started_at, started, outcome="ok", reply=reply)
                return Asked(reply, self.budget.counted(call, admitted, reply=reply))
        return None

    async def _choose(self, tries: Tries) -> Candidate | None:
        """The model to ask, as soon as one may be asked; None when the daemon stops."""
        while not self.stopping.is_set():
            choice = tries.choose()
            if isinstance(choice, Candidate):
                return choice
            if not tries.is_resting:
                tries.is_resting = True
                _log.info("waiting for the provider", wait_s=round(choice, 3))
                await self.journal.note("model_resting", wait_s=round(choice, 3))
            await self._pause(min(choice, _LOOK_AGAIN_S))
        return None

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.stopping.wait()

    async def _note_change(self, chosen: Candidate) -> None:
        change = self.failover.change(chosen)
        if change is None:
            return
        before, now = change
        _log.warning("another model is asked", before=before, now=now)
        await self.journal.note("model_changed", before=before, now=now)

    async def _note_failure(
        self, error: ModelError, attempt: int, delay_s: float | None, call: ModelCall
    ) -> None:
        facts = {
            "model": call.model,
            "kind": str(error.kind),
            "status": error.status,
            "message": error.message,
            "attempt": attempt,
            "wait_s": None if delay_s is None else round(delay_s, 3),
        }
        _log.warning("model call failed", **facts)
        await self.journal.note("model_call_failed", calls=[call], **facts)

    def _call(
        self,
        asked: Model,
        attempt: int,
        started_at: datetime,
        started: float,
        *,
        outcome: str,
        reply: ModelReply | None = None,
    ) -> ModelCall:
        run = self.journal.run
        usage = reply.usage if reply else Usage()
        model = reply.model if reply else asked.name
        price = self.price(model)
        return ModelCall(
            id=new_id(),
            session_id=run.session_id,
            task_id=run.task_id,
            run_id=run.id,
            model=model,
            attempt=attempt,
            started_at=started_at,
            duration_ms=round((self.journal.clock.monotonic() - started) * 1000),
            outcome=outcome,
            stop_reason=reply.stop_reason if reply else None,
            request_id=reply.request_id if reply else None,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cost_microusd=price.cost_microusd(usage) if price else None,
        )
