"""The agent loop: ask the model, carry out its calls, until a terminal tool ends the task.

Everything that decides what happens next is read from the journal, so that a run that starts after
a crash goes on exactly where the last one was cut off.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import anyio
import structlog

from agentd.agent.asking import Asking
from agentd.agent.budget import BudgetSpent
from agentd.agent.dispatch import Dispatch
from agentd.agent.endings import (
    AskAgain,
    Remind,
    after_reply,
    deadline_passed,
    failed_by,
    input_required,
    iterations_used_up,
)
from agentd.agent.guards import Bounds as GuardBounds
from agentd.agent.guards import Tell, circling
from agentd.agent.journal import Journal
from agentd.agent.opening import Opening
from agentd.agent.pictures import has_pictures
from agentd.agent.resume import Resume
from agentd.agent.transcript import PICTURES_WITHDRAWN, messages, tool_calls, unanswered
from agentd.domain.errors import ModelError, ModelErrorKind, RunLost, StoreError
from agentd.domain.event import Event, EventKind
from agentd.models.model import Model, ModelReply, ModelRequest
from agentd.store.runs import Ending

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one run, after task and configuration were merged."""

    max_tool_iterations: int
    max_tokens: int
    deadline_s: float
    reminders_most: int
    max_wait_s: float


class Strings(Protocol):
    """How the loop is reached from outside. `inbox`: something was said to its session."""

    inbox: anyio.Event
    stopping: anyio.Event


class Interrupted(Exception):
    """The daemon stops: the task goes back into the queue as it is."""


@dataclass(slots=True)
class Loop:
    """Works one claimed task."""

    journal: Journal
    opening: Opening
    asking: Asking
    dispatch: Dispatch
    bounds: Bounds
    guards: GuardBounds
    system: str
    tools: list[dict[str, object]]
    strings: Strings

    async def work(self) -> Ending | None:
        """How the task ends; None when a terminal tool has written that already.

        Raises Interrupted when the daemon stops, RunLost when the task is no longer this run's.
        """
        try:
            ending = await self._work_until_deadline()
        except BaseException:
            await self._keep_reply()
            raise
        await self.journal.flush()
        return ending

    async def _work_until_deadline(self) -> Ending | None:
        with anyio.move_on_after(self.bounds.deadline_s):
            try:
                await self.opening.write()
                if await self._finish_last_turn():
                    return None
                return await self._turns()
            except ModelError as error:
                return failed_by(error)
            except BudgetSpent as spent:
                return spent.ending
        return deadline_passed(self.journal.own(), self.bounds.deadline_s)

    async def _keep_reply(self) -> None:
        """A reply that is still held was paid for: it is kept although the run is cut off."""
        with anyio.CancelScope(shield=True):
            try:
                await self.journal.flush()
            except (StoreError, RunLost) as error:
                _log.warning("the last reply could not be kept", error=str(error))

    async def _turns(self) -> Ending | None:
        while True:
            ending = await self._react() or self._input_required() or self._used_up()
            if ending is not None:
                return ending
            await self._take_messages()
            reply = await self._ask()
            if not tool_calls(reply):
                await self.journal.flush()
            elif await self._carry_out(reply):
                return None

    async def _ask(self) -> Event:
        self._stop_if_asked()
        try:
            asked = await self.asking.ask(self._request)
        except ModelError as error:
            # A damaged picture would make every later request of the session one that is refused.
            shown = messages(self.journal.events)
            if error.kind is not ModelErrorKind.INVALID_REQUEST or not has_pictures(shown):
                raise
            await self.journal.note(PICTURES_WITHDRAWN, message=error.message)
            asked = await self.asking.ask(self._request)
        if asked is None:
            raise Interrupted
        event = self.journal.event(EventKind.ASSISTANT, **_assistant_body(asked.reply))
        self.journal.hold([event], calls=[asked.call])
        return self.journal.events[-1]

    def _request(self, model: Model) -> ModelRequest:
        """The next request, as `model` takes it."""
        provider, _, name = model.name.partition(":")
        return ModelRequest(
            model=name,
            system=self.system,
            tools=self.tools,
            messages=messages(self.journal.events, provider),
            max_tokens=self.bounds.max_tokens,
            turn=self.journal.replies(),
        )

    async def _carry_out(self, reply: Event) -> bool:
        """True when the task has ended."""
        invalid = reply.body.get("invalid_inputs", {})
        calls = [self.dispatch.prepare(block, invalid) for block in tool_calls(reply)]
        ended = await self.dispatch.run(calls)
        if not ended:
            self._stop_if_asked()
        return ended

    async def _finish_last_turn(self) -> bool:
        """Carry out what an interrupted run left open. True when that has ended the task."""
        left = unanswered(self.journal.events)
        if left is None:
            return False
        reply, blocks = left
        invalid = reply.body.get("invalid_inputs", {})
        calls = [self.dispatch.prepare(block, invalid) for block in blocks]
        return await self.dispatch.run(await Resume(self.journal, self.dispatch).settle(calls))

    async def _react(self) -> Ending | None:
        """To a reply without calls that nobody has answered yet: remind, ask again, or end."""
        said = [event for event in self.journal.own() if event.kind is not EventKind.NOTE]
        if not said or said[-1].kind is not EventKind.ASSISTANT or tool_calls(said[-1]):
            return None
        decision = after_reply(said, reminders_most=self.bounds.reminders_most)
        match decision:
            case Ending():
                return decision
            case Remind(text):
                event = self.journal.event(EventKind.USER, text=text, source="reminder")
                await self.journal.append([event])
            case AskAgain():
                pass
        return None

    def _input_required(self) -> Ending | None:
        wake_at = self.journal.clock.now() + timedelta(seconds=self.bounds.max_wait_s)
        return input_required(self.journal.own(), wake_at)

    def _used_up(self) -> Ending | None:
        used_up = iterations_used_up(self.journal.own(), self.bounds.max_tool_iterations)
        return used_up or self._circling()

    def _circling(self) -> Ending | None:
        match circling(self.journal.own(), self.guards):
            case Tell(rule, text):
                said = self.journal.event(EventKind.USER, text=text, source="guard", rule=rule)
                self.journal.hold([said])
                return None
            case ending:
                return ending

    async def _take_messages(self) -> None:
        if self.strings.inbox.is_set():
            self.strings.inbox = anyio.Event()
            await self.opening.deliver()

    def _stop_if_asked(self) -> None:
        if self.strings.stopping.is_set():
            raise Interrupted


def _assistant_body(reply: ModelReply) -> dict[str, object]:
    body: dict[str, object] = {
        "content": [dict(block) for block in reply.content],
        "stop_reason": reply.stop_reason,
        "model": reply.model,
    }
    if reply.invalid_inputs:
        body["invalid_inputs"] = dict(reply.invalid_inputs)
    if reply.is_estimated:
        body["is_estimated"] = True
    return body
