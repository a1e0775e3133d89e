"""The tool calls of a turn: in which order, with which promise about a crash, and their results.

Neighbouring `read` calls run together, the others one after another in the order of the calls, a
terminal tool last. Before an effect stands its intent in the journal; a transactional effect stands
in the same transaction as its result.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

import anyio
import structlog

from agentd.agent.inside import InsideResults
from agentd.agent.journal import CallJournal
from agentd.agent.results import ResultLayer
from agentd.agent.transcript import Block
from agentd.domain.errors import StillRunning, StoreError
from agentd.domain.event import EventKind, NewEvent
from agentd.store.store import Store
from agentd.toolkit.call import RolledBack, invoke, validate
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult

_log = structlog.get_logger()
_QUICK_S = 0.05  # the reply to reads that take no longer shares their commit


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model, looked up and validated. `refusal`: why it can not be carried out."""

    id: str
    name: str
    raw: Any
    tool: Tool | None
    arguments: Any
    refusal: ToolResult | None = None

    @property
    def effect(self) -> Effect:
        return self.tool.effect if self.tool and not self.refusal else Effect.READ

    @property
    def terminal(self) -> bool:
        return self.tool is not None and self.tool.terminal and self.refusal is None


class Route(Protocol):
    """Carries out a tool that is only a definition: the loop's own work."""

    async def carry_out(self, call: Call, dispatch: "Dispatch") -> None:
        """Journal intent and result; no result when the daemon stops before there is one."""
        ...


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Carries out calls for one run. `stopping`: no further call begins. `routes`: by tool."""

    journal: CallJournal
    store: Store
    registry: ToolRegistry
    injector: Injector
    stopping: anyio.Event
    results: ResultLayer | InsideResults
    routes: Mapping[str, "Route"] = field(default_factory=dict[str, "Route"])

    def prepare(self, block: Block, invalid_inputs: dict[str, str]) -> Call:
        """Look a call up and check its arguments; nothing is carried out."""
        call_id, name, raw = block["id"], block["name"], block["input"]
        if call_id in invalid_inputs:
            raw = invalid_inputs[call_id]
        found = self.registry.find(name)
        if isinstance(found, ToolResult):
            return Call(call_id, name, raw, None, None, found)
        if found.approval:
            return Call(call_id, name, raw, found, None, _not_approved(found))
        checked = validate(found, raw)
        if isinstance(checked, ToolResult):
            return Call(call_id, name, raw, found, None, checked)
        return Call(call_id, name, raw, found, checked)

    async def run(self, calls: Sequence[Call]) -> bool:
        """Carry them out. True when a terminal tool has ended the run's work. Raises RunLost."""
        ordinary = [call for call in calls if not call.terminal]
        for together, group in groupby(ordinary, key=lambda call: call.effect is Effect.READ):
            if self.stopping.is_set():
                return False
            neighbours = list(group)
            await (self._run_reads(neighbours) if together else self._run_each(neighbours))
        if self.stopping.is_set():
            return False
        return await self._run_terminals([call for call in calls if call.terminal])

    async def answer(self, call: Call, result: ToolResult) -> None:
        """Journal a result that came about without carrying the call out."""
        await self.journal.append([self.result_event(call, result)])

    async def _run_each(self, calls: list[Call]) -> None:
        for call in calls:
            if self.stopping.is_set():
                return
            if call.tool is not None and call.tool.routed:
                await self.routes[call.tool.name].carry_out(call, self)
            else:
                await self._run_one(call)

    async def _run_reads(self, calls: list[Call]) -> None:
        results: dict[str, ToolResult] = {}
        done = anyio.Event()

        async def one(call: Call) -> None:
            results[call.id] = call.refusal or await self._invoke(call)
            if len(results) == len(calls):
                done.set()

        try:
            async with anyio.create_task_group() as together:
                for call in calls:
                    together.start_soon(one, call)
                with anyio.move_on_after(_QUICK_S):
                    await done.wait()
                if not done.is_set():
                    await self.journal.flush()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # only the loss of the run or of the store
        # A read changes nothing, so its intent need not stand on disk before it.
        intents = [self.intent(call) for call in calls]
        answers = [self.result_event(call, results[call.id]) for call in calls]
        await self.journal.append([*intents, *answers])

    async def _run_terminals(self, calls: list[Call]) -> bool:
        for place, call in enumerate(calls):
            late = ToolResult.failure("task_ended", f"{call.name} has ended the task already")
            others = [self.result_event(other, late) for other in calls[place + 1 :]]
            result = await self._run_transactional(call, others)
            if not result.is_error:
                return True
        return False

    async def _run_one(self, call: Call) -> ToolResult:
        if call.refusal is not None:
            await self.answer(call, call.refusal)
            return call.refusal
        if call.effect is Effect.TRANSACTIONAL:
            return await self._run_transactional(call)
        await self.journal.append([self.intent(call)])
        result = await self._invoke(call)
        await self.journal.append([self.result_event(call, result)])
        return result

    async def _run_transactional(self, call: Call, also: Sequence[NewEvent] = ()) -> ToolResult:
        """Effect, intent and result in one transaction: after a crash all is there, or nothing."""
        try:
            async with self.store.transaction() as conn:
                conn.fence(self.journal.run, ends=call.terminal)
                result = await self._invoke(call, CallContext(conn, self.journal.run, call.id))
                if result.is_error:
                    raise RolledBack(result)  # noqa: TRY301 - leaving the block is what rolls back
                written = await self.journal.write(
                    [self.intent(call), self.result_event(call, result), *also], db=conn
                )
        except RolledBack as rolled_back:
            await self.answer(call, rolled_back.result)
            return rolled_back.result
        except StillRunning:
            result = _not_ended(call)
            await self.answer(call, result)
            return result
        except StoreError as error:
            if type(error) is not StoreError:  # the database, not a statement of the tool
                raise
            result = ToolResult.failure("store_error", f"{error.message}; nothing of it was kept")
            await self.answer(call, result)
            return result
        self.journal.committed(written)
        return result

    async def _invoke(self, call: Call, context: CallContext | None = None) -> ToolResult:
        assert call.tool is not None
        context = context or CallContext(self.store, self.journal.run, call.id)
        started = self.journal.clock.monotonic()
        result = await invoke(call.tool, call.arguments, self.injector, context)
        duration_ms = round((self.journal.clock.monotonic() - started) * 1000)
        _log.info("tool", tool=call.name, ok=not result.is_error, ms=duration_ms)
        return result

    def intent(self, call: Call) -> NewEvent:
        return self.journal.event(
            EventKind.TOOL_CALL,
            call_id=call.id,
            tool=call.name,
            effect=str(call.effect),
            digest=digest(call.raw),
        )

    def result_event(self, call: Call, result: ToolResult) -> NewEvent:
        return self.results.event(call.id, call.name, result)


def _not_approved(tool: Tool) -> ToolResult:
    return ToolResult.failure(
        "approval_required",
        f"{tool.name} needs the approval of a person, and nobody can be asked yet",
        next_action_hint=f"Do without it, or ask in wait_task that a person calls {tool.name}.",
    )


def _not_ended(call: Call) -> ToolResult:
    return ToolResult.failure(
        "task_not_ended",
        f"{call.name} says that it is terminal, but the task goes on; nothing of it was kept",
        next_action_hint="End the task with complete_task, fail_task or wait_task.",
    )


def digest(arguments: Any) -> str:
    """SHA-256, in hex, of the arguments as canonical JSON (sorted keys, no spaces)."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
