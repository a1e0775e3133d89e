"""update_task: change a task that has not begun."""

from typing import Annotated

from pydantic import Field

from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.ids import TaskId
from agentd.domain.moment import parse_moment
from agentd.domain.task import Priority
from agentd.store.tasks import TaskChanges, TaskStore
from agentd.toolkit.definition import Effect, tool
from agentd.tools.task.view_task import TaskView


@tool(group="task", effect=Effect.TRANSACTIONAL)
async def update_task(  # noqa: PLR0913 - one input for each thing that can change
    tasks: TaskStore,
    clock: Clock,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(min_length=4, description="The task's id, or the start or end of it.")
    ],
    prompt: Annotated[str | None, Field(min_length=1, description="What is to be done.")] = None,
    title: Annotated[str | None, Field(description="A few words for lists.")] = None,
    priority: Annotated[Priority | None, Field(description="How urgent.")] = None,
    after: Annotated[
        list[str] | None, Field(description="Ids of tasks that must be completed first.")
    ] = None,
    at: Annotated[
        str | None, Field(description="Not before: ISO 8601 or a duration (90m, 2d).")
    ] = None,
) -> TaskView:
    """Change a pending task. What is left out stays as it is; `after` replaces the whole list."""
    try:
        not_before = parse_moment(at, clock.now()) if at else None
    except ValueError as error:
        raise ToolError("invalid_arguments", f"at: {error}") from error
    task = await tasks.find(id)
    predecessors = None if after is None else tuple(TaskId(each) for each in after)
    changes = TaskChanges(prompt, title, priority, not_before, predecessors)
    return TaskView.of(await tasks.update(task.id, changes))
