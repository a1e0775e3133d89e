"""fail_task: the task can not be done."""

from typing import Annotated

from pydantic import Field

from agentd.domain.run import Run
from agentd.domain.task import TaskState
from agentd.store.runs import Ending, RunStore
from agentd.toolkit.definition import Effect, tool
from agentd.tools.task.complete_task import TaskEnded


@tool(group="task", terminal=True, effect=Effect.TRANSACTIONAL)
async def fail_task(
    run: Run,
    runs: RunStore,
    reason: Annotated[
        str, Field(min_length=1, description="Why it can not be done, and what was tried.")
    ],
) -> TaskEnded:
    """Mark the current task as failed, with the reason."""
    await runs.end(run, Ending("failed", TaskState.FAILED, error=reason, retryable=True))
    return TaskEnded(f"Task failed: {reason}", TaskState.FAILED)
