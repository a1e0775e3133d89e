"""delete_task: take a task out of the queue."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.ids import TaskId
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class TaskDeleted:
    message: str
    id: TaskId


@tool(group="task", effect=Effect.TRANSACTIONAL)
async def delete_task(
    tasks: TaskStore,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(min_length=4, description="The task's id, or the start or end of it.")
    ],
) -> TaskDeleted:
    """Delete a task that is not running. The journal of its session stays."""
    task = await tasks.find(id)
    await tasks.delete(task.id)
    return TaskDeleted(f"Deleted task {task.id}.", task.id)
