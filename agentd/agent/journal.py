"""The events of one run's session, in memory and on disk alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.domain.clock import Clock
from agentd.domain.event import Event, EventKind, NewEvent
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.store.events import EventStore
from agentd.store.model_calls import ModelCall


@dataclass(slots=True)
class Journal:
    """The only writer of its session while the run lasts. Every append is fenced by the run."""

    run: Run
    db: Transactor
    clock: Clock
    events: list[Event] = field(default_factory=list[Event])

    async def load(self) -> None:
        """Read what the session holds so far."""
        self.events = list(await EventStore(self.db, self.clock).of_session(self.run.session_id))

    async def append(self, events: Sequence[NewEvent], **along: Any) -> None:
        """Write `events`; in memory only once they are on disk. Raises RunLost.

        along: what else belongs into the same transaction, see `EventStore.append`.
        """
        self.committed(await self.write(events, db=self.db, **along))

    async def write(
        self, events: Sequence[NewEvent], *, db: Transactor, **along: Any
    ) -> Sequence[Event]:
        """Write `events` without taking note of them: `committed` does, after the commit."""
        return await EventStore(db, self.clock).append(
            self.run, self.events[-1].seq if self.events else 0, events, **along
        )

    def committed(self, written: Sequence[Event]) -> None:
        self.events.extend(written)

    def event(self, kind: EventKind, /, **body: Any) -> NewEvent:
        """An event of this run, not yet written."""
        return NewEvent(kind, body, self.run.task_id, self.run.id)

    async def note(self, note: str, /, *, call: ModelCall | None = None, **facts: Any) -> None:
        """Something for people; the model never sees it."""
        await self.append([self.event(EventKind.NOTE, note=note, **facts)], call=call)

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
