"""wait_task: the task can only go on later."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from agentd.config import Config
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.ids import TaskId
from agentd.domain.moment import parse_moment
from agentd.domain.run import Run
from agentd.domain.task import TaskState
from agentd.store.runs import Ending, RunStore
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool
from agentd.tools.task.complete_task import TaskEnded


@tool(group="task", terminal=True, effect=Effect.TRANSACTIONAL)
async def wait_task(  # noqa: PLR0913 - four capabilities, three inputs
    run: Run,
    runs: RunStore,
    tasks: TaskStore,
    clock: Clock,
    config: Config,
    reason: Annotated[str, Field(min_length=1, description="What is being waited for.")],
    until: Annotated[
        str | None,
        Field(
            description="When to go on: ISO 8601 (2026-12-24T18:00+01:00) or a duration (90m, 2d)."
        ),
    ] = None,
    on_task: Annotated[
        str | None, Field(description="Id of the task whose end to wait for.")
    ] = None,
) -> TaskEnded:
    """Put the current task aside until a time, another task's end, a message or a person's word.

    Without `until` and `on_task` a person must resume it. It goes on by itself in any case when the
    longest wait that the configuration allows has passed.
    """
    latest = clock.now() + timedelta(days=config.agent.max_wait_days)
    try:
        wake_at = min(parse_moment(until, clock.now()), latest) if until else latest
    except ValueError as error:
        raise ToolError("invalid_arguments", f"until: {error}") from error
    awaited = await tasks.get(TaskId(on_task)) if on_task else None
    ending = Ending(
        "waiting",
        TaskState.WAITING,
        waiting_reason=reason,
        wake_at=wake_at,
        wake_on_task=awaited.id if awaited else None,
    )
    await runs.end(run, ending)
    return TaskEnded(_message(reason, until and str(wake_at), on_task), TaskState.WAITING)


def _message(reason: str, until: str | None, on_task: str | None) -> str:
    conditions = [f"until {until}"] if until else []
    if on_task:
        conditions.append(f"for the end of task {on_task}")
    return f"Waiting ({' or '.join(conditions) or 'for a person'}): {reason}"
