"""list_tasks: the queue."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.ids import TaskId
from agentd.domain.task import Priority, TaskState
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool

_PROMPT_CHARS = 100


@dataclass(frozen=True, slots=True)
class TaskLine:
    """`prompt` is its start."""

    id: TaskId
    state: TaskState
    priority: Priority
    title: str | None
    prompt: str


@tool(group="task", effect=Effect.READ)
async def list_tasks(
    tasks: TaskStore,
    state: Annotated[TaskState | None, Field(description="Only those in this state.")] = None,
    priority: Annotated[Priority | None, Field(description="Only those of this priority.")] = None,
    limit: Annotated[int, Field(ge=1, le=200, description="How many at the most.")] = 20,
    offset: Annotated[int, Field(ge=0, description="How many to pass over first.")] = 0,
) -> list[TaskLine]:
    """List tasks: running, then pending in the order of work, then waiting, then ended ones."""
    found = await tasks.list(state=state, priority=priority, limit=limit, offset=offset)
    return [
        TaskLine(task.id, task.state, task.priority, task.title, task.prompt[:_PROMPT_CHARS])
        for task in found
    ]
