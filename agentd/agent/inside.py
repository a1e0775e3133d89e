"""The calls that a program makes, in the journal of its session.

They are events like those of the model's calls, with `within`: the id of the call that runs the
program. They never become messages: the model sees only what the program printed and gave.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.agent.journal import Journal
from agentd.domain.clock import Clock
from agentd.domain.event import Event, EventKind, Json, NewEvent
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.store.programs import KeptProgram, ProgramKey, ProgramStore


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

    def begun(self) -> set[str]:
        return set(self.intents())

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
