"""The events of one run's session, in memory and on disk alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentd.agent.secrecy import without_secrets
from agentd.domain.clock import Clock
from agentd.domain.event import Event, EventKind, Json, NewEvent, storable
from agentd.domain.redactor import Redactor
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.store.events import EventStore
from agentd.store.model_calls import ModelCall


class CallJournal(Protocol):
    """What carrying out calls needs of a journal: that of a session, or of one of its programs."""

    @property
    def run(self) -> Run: ...
    @property
    def clock(self) -> Clock: ...
    def event(self, kind: EventKind, /, **body: Any) -> NewEvent: ...
    def begun(self) -> Mapping[str, str]: ...
    async def append(self, events: Sequence[NewEvent]) -> None: ...
    async def write(self, events: Sequence[NewEvent], *, db: Transactor) -> Sequence[Event]: ...
    def committed(self, written: Sequence[Event]) -> None: ...
    async def flush(self) -> None: ...


@dataclass(slots=True)
class Journal:
    """The only writer of its session while the run lasts. Every append is fenced by the run.

    What is held stands in memory and goes to disk with whatever is written next, or by `flush`.
    `redactor` takes out secrets first, so that memory and disk say the same.
    """

    run: Run
    db: Transactor
    clock: Clock
    redactor: Redactor = field(default_factory=Redactor)
    events: list[Event] = field(default_factory=list[Event])
    _held: list[Event] = field(default_factory=list[Event])
    _calls: list[ModelCall] = field(default_factory=list[ModelCall])
    _opened: bool = False

    async def load(self) -> None:
        """Read what the session holds so far."""
        self.events = list(await EventStore(self.db, self.clock).of_session(self.run.session_id))

    def hold(
        self, events: Sequence[NewEvent], *, calls: Sequence[ModelCall] = (), opened: bool = False
    ) -> None:
        """Let `events` wait for the next write: for what has had no effect yet.

        calls: the model calls that they came from. opened: with them the task is told what woke it.
        """
        numbered = self._numbered(events)
        self._held += numbered
        self._calls += calls
        self.events += numbered
        self._opened |= opened

    async def flush(self) -> None:
        """Write what is held, if anything is."""
        if self._held:
            await self.append([])

    async def append(self, events: Sequence[NewEvent], **along: Any) -> None:
        """Write `events`; in memory only once they are on disk. Raises RunLost.

        along: what else belongs into the same transaction, see `EventStore.append`.
        """
        self.committed(await self.write(events, db=self.db, **along))

    async def write(
        self, events: Sequence[NewEvent], *, db: Transactor, **along: Any
    ) -> Sequence[Event]:
        """Write `events` without taking note of them: `committed` does, after the commit."""
        numbered = self._numbered(events)
        store = EventStore(db, self.clock)
        await store.append(
            self.run,
            [*self._held, *numbered],
            calls=self._calls,
            opened=self._opened,
            large=[each.large for each in events if each.large is not None],
            **along,
        )
        return numbered

    def committed(self, written: Sequence[Event]) -> None:
        self._held, self._calls, self._opened = [], [], False
        self.events.extend(written)

    def event(self, kind: EventKind, /, **body: Any) -> NewEvent:
        """An event of this run, not yet written."""
        return NewEvent(kind, body, self.run.task_id, self.run.id)

    async def note(self, note: str, /, *, calls: Sequence[ModelCall] = (), **facts: Any) -> None:
        """Something for people; the model never sees it."""
        self.hold([self.event(EventKind.NOTE, note=note, **facts)], calls=calls)
        await self.flush()

    def _numbered(self, events: Sequence[NewEvent]) -> list[Event]:
        now, first = self.clock.now(), self.events[-1].seq + 1 if self.events else 1
        session_id = self.run.session_id
        return [
            Event(session_id, seq, each.kind, self._body(each), each.task_id, each.run_id, now)
            for seq, each in enumerate(events, start=first)
        ]

    def begun(self) -> Mapping[str, str]:
        """The effect of each of the model's own calls that has an intent, by id."""
        return {
            event.body["call_id"]: event.body["effect"]
            for event in self.events
            if event.kind is EventKind.TOOL_CALL and not event.inside
        }

    def _body(self, event: NewEvent) -> Json:
        return without_secrets(event.kind, storable(event.body), self.redactor)

    def replies(self) -> int:
        """How often the model has answered for this task."""
        return sum(
            event.kind is EventKind.ASSISTANT and event.task_id == self.run.task_id
            for event in self.events
        )

    def own(self) -> list[Event]:
        """The events of this task since it was last started by somebody, newest last."""
        found: list[Event] = []
        for event in reversed(self.events):
            if event.task_id != self.run.task_id:
                continue
            if event.kind is EventKind.USER and event.body["source"] in ("task", "resume"):
                break
            found.append(event)
        return found[::-1]
