"""await_task: the end of a task, for those who asked for it from outside."""

from typing import Annotated

import anyio
from pydantic import Field

from agentd.domain.ids import TaskId
from agentd.domain.task import TaskState
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool
from agentd.toolkit.progress import Progress
from agentd.tools.task.view_task import TaskView

_LOOK_AGAIN_S = 0.5
_OVER = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED, TaskState.WAITING})


@tool(group="task", effect=Effect.READ, toolsets=("serve",))
async def await_task(
    tasks: TaskStore,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(min_length=4, description="The task's id, or the start or end of it.")
    ],
    timeout_seconds: Annotated[
        float, Field(gt=0, le=3600, description="How long to wait at the most.")
    ] = 300,
    progress: Progress | None = None,
) -> TaskView:
    """Wait until a task has ended or waits for somebody, and show it; or as it is by then."""
    task = await tasks.find(id)
    began = anyio.current_time()
    with anyio.move_on_after(timeout_seconds):
        while task.state not in _OVER:
            if progress is not None:
                waited_s = round(anyio.current_time() - began, 3)
                progress.tell(waited_s, timeout_seconds, f"the task is {task.state}")
            await anyio.sleep(_LOOK_AGAIN_S)
            task = await tasks.get(TaskId(task.id))
    return TaskView.of(task)
