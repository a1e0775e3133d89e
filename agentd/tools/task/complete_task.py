"""complete_task: the task is done."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.run import Run
from agentd.domain.task import TaskState
from agentd.store.runs import Ending, RunStore
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """`state`: what the task is now."""

    message: str
    state: TaskState


@tool(group="task", terminal=True, effect=Effect.TRANSACTIONAL)
async def complete_task(
    run: Run,
    runs: RunStore,
    summary: Annotated[
        str,
        Field(
            min_length=1,
            description="What was done, where it is and what was found; it must stand on its own.",
        ),
    ],
) -> TaskEnded:
    """Mark the current task as complete with a summary of what was accomplished."""
    await runs.end(run, Ending("completed", TaskState.COMPLETED, output=summary))
    return TaskEnded(f"Task completed: {summary}", TaskState.COMPLETED)
