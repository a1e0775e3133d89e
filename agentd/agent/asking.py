"""One reply of the model: every attempt is journaled, and this is the only layer that retries."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol

import anyio
import structlog

from agentd.agent.budget import Admitted, Budget
from agentd.agent.journal import Journal
from agentd.domain.errors import ModelError
from agentd.domain.ids import new_id
from agentd.domain.usage import Price, Usage
from agentd.models.model import Model, ModelReply, ModelRequest
from agentd.store.model_calls import ModelCall

_log = structlog.get_logger()


class Patience(Protocol):
    """How long to wait after a failed attempt; None: not at all, give up."""

    def __call__(self, error: ModelError, attempt: int) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply, and the row that counts it; the caller writes both."""

    reply: ModelReply
    call: ModelCall


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks one model for one run. `stopping` ends a wait between two attempts at once."""

    model: Model
    journal: Journal
    patience: Patience
    price: Callable[[str], Price | None]
    budget: Budget
    stopping: anyio.Event

    async def ask(self, request: ModelRequest) -> Asked | None:
        """The reply; None when the daemon stops before there is one.

        Raises ModelError, and BudgetSpent when a limit does not allow the call.
        """
        attempt = 0
        while True:
            attempt += 1
            admitted = await self.budget.admit(self.model, partial(_request_for, request), attempt)
            if admitted is None:
                return None
            started_at, started = self.journal.clock.now(), self.journal.clock.monotonic()
            try:
                reply = await admitted.model.reply(admitted.request)
            except ModelError as error:
                delay_s = self.patience(error, attempt)
                call = self._call(admitted, attempt, started_at, started, outcome=str(error.kind))
                call = self.budget.counted(call, admitted, error=error)
                await self._note_failure(error, attempt, delay_s, call)
                if delay_s is None:
                    raise
                with anyio.move_on_after(delay_s):
                    await self.stopping.wait()
                if self.stopping.is_set():
                    return None
                continue
            call = self._call(admitted, attempt, started_at, started, outcome="ok", reply=reply)
            return Asked(reply, self.budget.counted(call, admitted, reply=reply))

    async def _note_failure(
        self, error: ModelError, attempt: int, delay_s: float | None, call: ModelCall
    ) -> None:
        facts = {
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
        admitted: Admitted,
        attempt: int,
        started_at: datetime,
        started: float,
        *,
        outcome: str,
        reply: ModelReply | None = None,
    ) -> ModelCall:
        run = self.journal.run
        usage = reply.usage if reply else Usage()
        model = reply.model if reply else admitted.model.name
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


def _request_for(request: ModelRequest, model: Model) -> ModelRequest:
    return replace(request, model=model.name.partition(":")[2])
