"""Carries out `execute_code`: runs the program, and its calls as if the model had made them.

A pause of a program is like a turn of the model: a set of calls, settled by their effects when a
crash cut them off, then carried out by the same dispatch. The state of the program goes into the
database with the first event of the pause, so the program goes on there after a crash. Where a
language keeps no state the program runs again: calls that have ended are answered from the journal,
and one that is not the same as before ends it.
"""

import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentd.agent.dispatch import Call, Dispatch, digest
from agentd.agent.inside import InsideJournal, InsideResults
from agentd.agent.journal import Journal
from agentd.agent.resume import Resume
from agentd.domain.event import Event, EventKind
from agentd.sandbox.code.program import (
    Answer,
    Asked,
    Broken,
    Ended,
    Function,
    Interpreter,
    Limits,
    NotRestored,
    Paused,
    Program,
    Setting,
    Snapshot,
    Unavailable,
)
from agentd.sandbox.code.seal import Seal
from agentd.store.programs import KeptProgram, ProgramKey, ProgramStore
from agentd.toolkit.adapters.code_names import python_tools, typescript_tools
from agentd.toolkit.definition import Tool
from agentd.toolkit.result import ToolResult

_FORBIDDEN = "{tool} can not be called by a program"
_FORBIDDEN_HINT = "Let the program end and call it yourself."
_INTERRUPTED_HINT = (
    "Look at what has happened before you write the program again, and leave out what was done."
)


class Interrupted(Exception):
    """The program was cut off by a crash and can not go on; what it did stays done."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The way of `execute_code`, for all runs of a daemon. `interpreters`: by language.

    `settled`: waits, not for long, until the tools are there that come from elsewhere. A program
    knows those that it begins with, and one that goes on after a crash knew them before.
    """

    interpreters: Mapping[str, Interpreter]
    limits: Limits
    seal: Seal
    settled: Callable[[], Awaitable[None]]
    toolset: str = "worker"

    async def carry_out(self, call: Call, dispatch: Dispatch) -> None:
        """Journal the result of `call`; nothing, when the daemon stops before there is one."""
        journal = dispatch.journal
        assert isinstance(journal, Journal)  # a program runs no programs
        began_ms = await self._begin(call, dispatch, journal)
        await self.settled()
        key = ProgramKey(journal.run.session_id, _reply_seq(journal), call.id)
        running = _Running(
            call=call,
            dispatch=dispatch,
            inside=InsideJournal(journal, key),
            limits=self.limits,
            seal=self.seal,
            functions=_functions(call, dispatch.registry.definitions(self.toolset)),
            began_ms=began_ms,
        )
        result = await running.work(self.interpreters)
        if result is not None:
            await self._end(call, dispatch, journal, result)

    async def _begin(self, call: Call, dispatch: Dispatch, journal: Journal) -> int:
        """The intent, unless it stands there from before a crash. When that was, in ms."""
        for event in reversed(journal.events):
            if event.kind is EventKind.ASSISTANT:
                break
            if event.kind is EventKind.TOOL_CALL and event.body["call_id"] == call.id:
                return _milliseconds(event)
        # It has no effect of its own: it waits for the first thing that has.
        journal.hold([dispatch.intent(call)])
        return _milliseconds(journal.events[-1])

    async def _end(
        self, call: Call, dispatch: Dispatch, journal: Journal, result: ToolResult
    ) -> None:
        async with journal.db.transaction() as conn:
            await ProgramStore(conn, journal.clock).forget(journal.run.session_id)
            written = await journal.write([dispatch.result_event(call, result)], db=conn)
        journal.committed(written)


def _functions(call: Call, tools: Sequence[Tool]) -> dict[str, Function]:
    """The tools by their names in code, also those that programs may not call: they are refused."""
    named = typescript_tools if call.arguments.language == "typescript" else python_tools
    return {each.name: Function(each.tool.name, each.parameters) for each in named(tools)}


@dataclass(slots=True)
class _Running:
    """One program of one call."""

    call: Call
    dispatch: Dispatch
    inside: InsideJournal
    limits: Limits
    seal: Seal
    functions: Mapping[str, Function]
    began_ms: int

    async def work(self, interpreters: Mapping[str, Interpreter]) -> ToolResult | None:
        """None: the daemon stops, and the next one goes on with it."""
        arguments = self.call.arguments
        interpreter = interpreters.get(arguments.language)
        if interpreter is None:
            known = " or ".join(sorted(interpreters)) or "none"
            return ToolResult.failure(
                "unavailable",
                f"there is no {arguments.language} here",
                next_action_hint=f"Languages of this home: {known}.",
            )
        if len(arguments.code.encode(errors="replace")) > self.limits.code_bytes:
            return ToolResult.failure(
                "invalid_arguments", f"the code is longer than {self.limits.code_bytes} bytes"
            )
        try:
            return await self._run(interpreter, arguments.code)
        except Unavailable as why:
            return ToolResult.failure("unavailable", str(why))
        except (Interrupted, NotRestored) as why:
            return self._interrupted(str(why))

    async def _run(self, interpreter: Interpreter, code: str) -> ToolResult | None:
        snapshot, setting = await self._state(interpreter)
        async with interpreter.open(setting) as program:
            step = await (program.restore(snapshot) if snapshot else program.start(code))
            while isinstance(step, Paused):
                self._keep(program)
                answers = await self._answers(step)
                if answers is None:
                    return None
                step = await program.resume(answers)
            return self._result(program, step)

    async def _state(self, interpreter: Interpreter) -> tuple[Snapshot | None, Setting]:
        """Where to start. Raises Interrupted when that can not be known."""
        setting = Setting(
            functions=self.functions,
            limits=self.limits,
            seed="/".join(self.inside.key.parts()),
            now_ms=self.began_ms,
        )
        if not interpreter.keeps_state or not self.inside.begun():
            return None, setting
        store = ProgramStore(self.inside.outer.db, self.inside.clock)
        kept = await store.find(self.inside.key)
        if kept is None:
            raise Interrupted("its state was too large to be kept")
        if not self.seal.fits(kept.seal, *self.inside.key.parts(), kept.state):
            raise Interrupted("its state was changed by somebody else")
        state = json.loads(kept.state)
        return _thawed(state), replace(setting, printed=state["printed"], spent_s=state["spent_s"])

    def _keep(self, program: Program) -> None:
        """Let the state of the program go into the database with what is written next."""
        snapshot = program.snapshot()
        if snapshot is None:
            return
        state = json.dumps(_frozen(snapshot, program), ensure_ascii=True)
        self.inside.due = KeptProgram(state, self.seal.of(*self.inside.key.parts(), state))

    async def _answers(self, pause: Paused) -> dict[int, Answer] | None:
        """One for each call; None when the daemon stops before all are there."""
        calls = {asked.number: self._prepare(asked) for asked in pause.asked}
        self._refuse_others(calls.values())
        done = self.inside.results()
        open_calls = [call for call in calls.values() if call.id not in done]
        if open_calls:
            # What is too long for the model is what programs are for.
            whole = self.limits.value_bytes
            results = InsideResults(self.inside, self.dispatch.results.redactor, whole)
            dispatch = replace(self.dispatch, journal=self.inside, results=results)
            await dispatch.run(await Resume(self.inside, dispatch).settle(open_calls))
            done = self.inside.results()
        if any(call.id not in done for call in calls.values()):
            return None
        return {number: _answer(done[call.id]) for number, call in calls.items()}

    def _prepare(self, asked: Asked) -> Call:
        call_id = f"{self.call.id}#{asked.number}"
        block = {"id": call_id, "name": asked.tool, "input": dict(asked.arguments)}
        call = self.dispatch.prepare(block, {})
        if call.tool is not None and not call.tool.for_programs:
            refusal = ToolResult.failure(
                "forbidden_tool",
                _FORBIDDEN.format(tool=asked.tool),
                next_action_hint=_FORBIDDEN_HINT,
            )
            return replace(call, refusal=refusal)
        return call

    def _refuse_others(self, calls: Iterable[Call]) -> None:
        """A program that runs again must make the calls it has made. Raises Interrupted."""
        intents = self.inside.intents()
        for call in calls:
            before = intents.get(call.id)
            if before and (before["tool"], before["digest"]) != (call.name, digest(call.raw)):
                raise Interrupted(
                    f"when it ran again it called {call.name} where it had called {before['tool']} "
                    "or with other arguments"
                )

    def _result(self, program: Program, step: Ended | Broken) -> ToolResult:
        results = self.inside.results().values()
        if isinstance(step, Ended):
            told = _told(program.printed, step.value, len(results))
        else:
            printed = f"\n\nPrinted before:\n{program.printed}" if program.printed else ""
            text = f"{step.message}\n\nTool calls that were made: {len(results)}.{printed}"
            told = ToolResult.failure(step.error_type, text)
        # It may say what strangers wrote as soon as one of its tools has read it.
        outside = any(event.body.get("outside") for event in results)
        return replace(told, outside_of=self.call.name) if outside else told

    def _interrupted(self, why: str) -> ToolResult:
        done = self.inside.results()
        lines = [
            f"{body['tool']}: {_outcome(done.get(call_id))}"
            for call_id, body in sorted(self.inside.intents().items(), key=_number)
        ]
        return ToolResult.failure(
            "interrupted",
            f"The daemon stopped in the middle of the program, and it can not go on: {why}. Its "
            "calls until then:\n" + "\n".join(lines),
            next_action_hint=_INTERRUPTED_HINT,
        )


def _told(printed: str, value: Any, calls: int) -> ToolResult:
    """What the model reads: what was printed, then what the program gave."""
    data = {"printed": printed, "value": value, "calls": calls}
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    parts = [printed.rstrip("\n")] if printed else []
    if value is not None:
        parts.append(f"Result: {shown}" if printed else shown)
    return ToolResult.success("\n".join(parts) or "(no output)", data)


def _outcome(result: Event | None) -> str:
    if result is None:
        return "begun; whether it took effect is unknown"
    return f"failed ({result.body['error_type']})" if result.body["is_error"] else "done"


def _answer(event: Event) -> Answer:
    """What the program gets: the data of a result where there are any, else its text."""
    body = event.body
    if body["is_error"]:
        text = body["content"]
        return Answer(None, str(text), body.get("error_type"), _milliseconds(event))
    return Answer(body.get("data", body["content"]), None, None, _milliseconds(event))


def _milliseconds(event: Event) -> int:
    return int(event.created_at.timestamp() * 1000)


def _number(entry: tuple[str, Any]) -> int:
    return int(entry[0].rpartition("#")[2])


def _reply_seq(journal: Journal) -> int:
    return next(e.seq for e in reversed(journal.events) if e.kind is EventKind.ASSISTANT)


def _frozen(snapshot: Snapshot, program: Program) -> dict[str, Any]:
    return {
        "snapshot": base64.b64encode(snapshot.state).decode(),
        "open": {own: asdict(asked) for own, asked in snapshot.open.items()},
        "asked": snapshot.asked,
        "printed": program.printed,
        "spent_s": program.spent_s,
    }


def _thawed(state: Mapping[str, Any]) -> Snapshot:
    open_calls = {own: Asked(**each) for own, each in state["open"].items()}
    return Snapshot(base64.b64decode(state["snapshot"]), open_calls, state["asked"])
