"""The calls that a program makes, in the journal of its session.

They are events like those of the model's calls, with `within`: the id of the call that runs the
program. They never become messages: the model sees only what the program printed and gave.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.agent.journal import Journal
from agentd.agent.results import cleaned
from agentd.domain.clock import Clock
from agentd.domain.event import Event, EventKind, Json, NewEvent
from agentd.domain.outside import said
from agentd.domain.redactor import Redactor
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.store.programs import KeptProgram, ProgramKey, ProgramStore
from agentd.toolkit.result import ToolResult, model_content, truncate

_NO_PICTURES = "[the pictures are left out: they are larger than what a program can take]"


@dataclass(slots=True)
class InsideJournal:
    """A session's journal as the calls of one program see it.

    `due`: the state of the program, which goes along with the first event after a pause.
    """

    outer: Journal
    key: ProgramKey
    due: KeptProgram | None = None

    @property
    def run(self) -> Run:
        return self.outer.run

    @property
    def clock(self) -> Clock:
        return self.outer.clock

    def event(self, kind: EventKind, /, **body: Any) -> NewEvent:
        return self.outer.event(kind, **body, within=self.key.call_id)

    async def append(self, events: Sequence[NewEvent]) -> None:
        async with self.outer.db.transaction() as conn:
            written = await self.write(events, db=conn)
        self.committed(written)

    async def write(self, events: Sequence[NewEvent], *, db: Transactor) -> Sequence[Event]:
        if self.due is not None:
            await ProgramStore(db, self.clock).keep(self.key, self.due)
        return await self.outer.write(events, db=db)

    def committed(self, written: Sequence[Event]) -> None:
        self.due = None
        self.outer.committed(written)

    async def flush(self) -> None:
        await self.outer.flush()

    def begun(self) -> Mapping[str, str]:
        return {call_id: body["effect"] for call_id, body in self.intents().items()}

    def intents(self) -> dict[str, Json]:
        """The calls of the program that have begun, by id."""
        return self._bodies(EventKind.TOOL_CALL)

    def results(self) -> dict[str, Event]:
        """Those that have an answer."""
        return {e.body["call_id"]: e for e in self._events() if e.kind is EventKind.TOOL_RESULT}

    def _bodies(self, kind: EventKind) -> dict[str, Json]:
        return {e.body["call_id"]: e.body for e in self._events() if e.kind is kind}

    def _events(self) -> Iterator[Event]:
        for event in reversed(self.outer.events):
            if event.seq <= self.key.reply_seq:
                return
            if event.body.get("within") == self.key.call_id:
                yield event


@dataclass(frozen=True, slots=True)
class InsideResults:
    """The results that a program gets: whole, with all their data, without secrets.

    What is longer than a program could take is text that is cut, instead of data and pictures.
    They are not marked as strangers' words: what the program makes of them is, if any of them was.
    """

    journal: InsideJournal
    redactor: Redactor
    most_chars: int

    def event(self, call_id: str, tool: str, result: ToolResult) -> NewEvent:
        result = cleaned(result, self.redactor)
        content = model_content(result, limit_chars=self.most_chars)
        if not isinstance(content, str) and not self._fits(content):
            content = truncate(f"{said(content)}\n{_NO_PICTURES}", self.most_chars)
        body: dict[str, Any] = {
            "call_id": call_id,
            "tool": tool,
            "content": content,
            "is_error": result.is_error,
        }
        if result.error_type is not None:
            body["error_type"] = result.error_type
        if result.outside_of is not None:
            body["outside"] = True
        if result.data is not None and self._fits(result.data):
            body["data"] = result.data
        return self.journal.event(EventKind.TOOL_RESULT, **body)

    def _fits(self, value: Any) -> bool:
        return len(json.dumps(value, ensure_ascii=False)) <= self.most_chars
