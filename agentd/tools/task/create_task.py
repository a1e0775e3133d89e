"""create_task: put another task into the queue."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.ids import SessionId, TaskId
from agentd.domain.moment import parse_moment
from agentd.domain.run import Run
from agentd.domain.task import NewTask, Priority
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool
from agentd.tools.task.view_task import TaskView


@dataclass(frozen=True, slots=True)
class TaskCreated:
    """`created` is False when an unfinished task had the key already."""

    message: str
    created: bool
    task: TaskView


@tool(group="task", effect=Effect.TRANSACTIONAL)
async def create_task(  # noqa: PLR0913 - one input for each thing a task can be given
    tasks: TaskStore,
    clock: Clock,
    prompt: Annotated[
        str,
        Field(min_length=1, description="What is to be done; all that is needed must stand in it."),
    ],
    title: Annotated[str | None, Field(description="A few words for lists.")] = None,
    priority: Annotated[Priority, Field(description="How urgent.")] = Priority.MEDIUM,
    after: Annotated[
        list[str] | None, Field(description="Ids of tasks that must be completed first.")
    ] = None,
    session: Annotated[
        str | None, Field(description="The session to work it in; none opens a new one.")
    ] = None,
    at: Annotated[
        str | None, Field(description="Not before: ISO 8601 or a duration (90m, 2d).")
    ] = None,
    key: Annotated[
        str | None,
        Field(
            description="A name of its own: while a task with it is unfinished, no second is made."
        ),
    ] = None,
    run: Run | None = None,
) -> TaskCreated:
    """Put a new task into the queue. It is worked on its own, later; its output is not awaited."""
    try:
        not_before = parse_moment(at, clock.now()) if at else None
    except ValueError as error:
        raise ToolError("invalid_arguments", f"at: {error}") from error
    enqueued = await tasks.enqueue(
        NewTask(
            prompt=prompt,
            title=title,
            priority=priority,
            session_id=SessionId(session) if session else None,
            after=tuple(TaskId(each) for each in after or ()),
            not_before=not_before,
            key=key,
            enqueued_by=f"task:{run.task_id}" if run else "cli",
        )
    )
    what = "Created" if enqueued.created else f"Key {key!r} is taken by"
    view = TaskView.of(enqueued.task)
    return TaskCreated(f"{what} task {view.id} ({view.state}).", enqueued.created, view)
