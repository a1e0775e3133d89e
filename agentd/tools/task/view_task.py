"""view_task: one task in full."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from agentd.domain.ids import SessionId, TaskId
from agentd.domain.task import Priority, Task, TaskState
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as the model and people see it; times in UTC."""

    id: TaskId
    session: SessionId
    title: str | None
    prompt: str
    state: TaskState
    priority: Priority
    after: tuple[TaskId, ...]
    not_before: datetime | None
    key: str | None
    model: str | None
    attempt: int
    waiting_reason: str | None
    wake_at: datetime | None
    wake_on_task: TaskId | None
    output: str | None
    error: str | None
    retryable: bool
    enqueued_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, task: Task) -> Self:
        same = [name for name in cls.__dataclass_fields__ if name != "session"]
        return cls(session=task.session_id, **{name: getattr(task, name) for name in same})


@tool(group="task", effect=Effect.READ)
async def view_task(
    tasks: TaskStore,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(min_length=4, description="The task's id, or the start or end of it.")
    ],
) -> TaskView:
    """Show one task: its prompt, state, output or error, and what it waits for."""
    return TaskView.of(await tasks.find(id))
