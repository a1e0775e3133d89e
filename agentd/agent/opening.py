"""What the model is told when a run starts: the prompt, what came before, what woke the task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentd.agent.journal import Journal
from agentd.domain.event import EventKind, NewEvent
from agentd.domain.ids import TaskId
from agentd.domain.task import Task
from agentd.store.events import EventStore
from agentd.store.runs import Claim

_PREDECESSOR = "The task {id} ({title}), which had to end before this one, has {state}.\n{outcome}"
_WOKEN = {
    "time": "The time until which you waited has come.",
    "task": "The task for which you waited has ended.",
    "message": "A message has come in; it follows.",
    "person": "A person lets you go on.",
    "retry": "A person wants this task to be tried again. The last try ended with: {error}",
}
_WAITED = "You were waiting: {reason}\n{what}"


@dataclass(slots=True)
class Opening:
    """The first events of a run; none, when a run of this task was merely interrupted."""

    journal: Journal
    claim: Claim

    async def write(self) -> None:
        task = self.claim.task
        if not self.claim.fresh:
            await self.journal.load()
        events: list[NewEvent] = []
        if not self._was_started():
            events.append(self._say(await self._first_text(task), "task"))
        elif self.claim.woken_by is not None:
            events.append(self._say(await self._resume_text(task), "resume"))
        if events:
            self.journal.hold(events, opened=self.claim.woken_by is not None)

    async def deliver(self) -> None:
        """Write into the journal what was said to the session in the meantime."""
        waiting = await EventStore(self.journal.db, self.journal.clock).messages(
            self.journal.run.session_id
        )
        if waiting:
            events = [self._say(row["body"], "message", sender=row["sender"]) for row in waiting]
            await self.journal.append(events, delivered=[row["id"] for row in waiting])

    def _was_started(self) -> bool:
        return any(
            event.task_id == self.claim.task.id and event.kind is EventKind.USER
            for event in self.journal.events
        )

    def _say(self, text: str, source: str, **facts: Any) -> NewEvent:
        return self.journal.event(EventKind.USER, text=text, source=source, **facts)

    async def _first_text(self, task: Task) -> str:
        parts = [await self._outcomes(task.after), task.prompt]
        return "\n\n".join(part for part in parts if part)

    async def _resume_text(self, task: Task) -> str:
        woken_by = self.claim.woken_by or ""
        what = _WOKEN[woken_by].format(error=task.error or "no reason")
        if woken_by == "task" and task.wake_on_task:
            what = f"{what}\n{await self._outcomes([task.wake_on_task])}"
        return (
            _WAITED.format(reason=task.waiting_reason, what=what) if task.waiting_reason else what
        )

    async def _outcomes(self, task_ids: Sequence[TaskId]) -> str:
        if not task_ids:
            return ""
        store = EventStore(self.journal.db, self.journal.clock)
        found = await store.outcomes(task_ids)
        return "\n\n".join(
            _PREDECESSOR.format(
                id=row["id"],
                title=row["title"] or "untitled",
                state=row["state"],
                outcome=_outcome(row),
            )
            for row in found
        )


def _outcome(row: dict[str, Any]) -> str:
    said = [f"Its output:\n{row['output']}"] if row["output"] else []
    failed = [f"Its error: {row['error']}"] if row["error"] else []
    return "\n".join(failed + said) or "It left no output."
