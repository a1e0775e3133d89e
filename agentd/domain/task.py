"""A task: one prompt to be worked in a session until a terminal tool; the queue's unit."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from textwrap import shorten

from agentd.domain.ids import ScheduleId, SessionId, TaskId


class TaskState(StrEnum):
    PENDING = "pending"  # may be claimed once its predecessors are done and its session is free
    RUNNING = "running"  # one worker owns it
    WAITING = "waiting"  # something named must wake it
    COMPLETED = "completed"  # final
    FAILED = "failed"  # final until a person retries it
    CANCELLED = "cancelled"  # final until a person retries it


_TITLE_LENGTH = 60
UNFINISHED = frozenset({TaskState.PENDING, TaskState.RUNNING, TaskState.WAITING})
FINISHED = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED})

# What may follow what. The SQL of `store/sql/tasks.sql` holds to it, and a test compares the two.
TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    TaskState.PENDING: frozenset({TaskState.RUNNING, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.RUNNING: frozenset(
        {
            TaskState.COMPLETED,
            TaskState.FAILED,
            TaskState.WAITING,
            TaskState.CANCELLED,
            TaskState.PENDING,
        }
    ),
    TaskState.WAITING: frozenset({TaskState.PENDING, TaskState.CANCELLED}),
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset({TaskState.PENDING}),
    TaskState.CANCELLED: frozenset({TaskState.PENDING}),
}


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one task; None means what the configuration says.

    `max_tool_iterations`: model calls, 0 = unlimited. `deadline_s`: seconds of one run.
    `max_attempts`: runs that may end with a passing error or with their daemon.
    `max_cost_microusd`, `max_total_tokens`: of all its model calls together.
    """

    max_tool_iterations: int | None = None
    deadline_s: float | None = None
    max_attempts: int | None = None
    max_cost_microusd: int | None = None
    max_total_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NewTask:
    """What somebody asks for. `session_id` None opens a new session.

    `after`: ids of tasks that must end first; completed ones only, unless `after_any`.
    `schedule_id`: the schedule that made it.
    `key`: enqueueing an unfinished key again returns the task that has it.
    """

    prompt: str
    title: str | None = None
    priority: Priority = Priority.MEDIUM
    session_id: SessionId | None = None
    after: tuple[TaskId, ...] = ()
    after_any: bool = False
    not_before: datetime | None = None
    key: str | None = None
    model: str | None = None
    schedule_id: ScheduleId | None = None
    limits: Limits = field(default_factory=Limits)
    enqueued_by: str = "cli"

    def session_title(self) -> str | None:
        """Of the session that the task opens; a named one does not get it from one task."""
        if self.session_id is not None:
            return self.title
        return self.title or shorten(self.prompt, _TITLE_LENGTH, placeholder=" …")

    def as_task(self, task_id: TaskId, session_id: SessionId, now: datetime) -> "Task":
        """What stands in the queue once this was enqueued."""
        return Task(
            id=task_id,
            session_id=session_id,
            prompt=self.prompt,
            title=self.title,
            priority=self.priority,
            state=TaskState.PENDING,
            after=tuple(sorted(set(self.after))),
            after_any=self.after_any,
            not_before=self.not_before,
            key=self.key,
            model=self.model,
            schedule_id=self.schedule_id,
            limits=self.limits,
            attempt=0,
            token=0,
            waiting_reason=None,
            wake_at=None,
            wake_on_task=None,
            output=None,
            error=None,
            retryable=False,
            cancel_requested_at=None,
            enqueued_by=self.enqueued_by,
            created_at=now,
            updated_at=now,
            started_at=None,
            finished_at=None,
        )


@dataclass(frozen=True, slots=True)
class Task:
    """One row of the queue.

    `attempt` counts claims, but for those that were put back unharmed or came to wait.
    `token` rises with every claim.
    `wake_at` and `wake_on_task` are the wake condition of a waiting task; both None: a person.
    `output` is the summary of `complete_task`, or the last text of a task that failed.
    """

    id: TaskId
    session_id: SessionId
    prompt: str
    title: str | None
    priority: Priority
    state: TaskState
    after: tuple[TaskId, ...]
    after_any: bool
    not_before: datetime | None
    key: str | None
    model: str | None
    schedule_id: ScheduleId | None
    limits: Limits
    attempt: int
    token: int
    waiting_reason: str | None
    wake_at: datetime | None
    wake_on_task: TaskId | None
    output: str | None
    error: str | None
    retryable: bool
    cancel_requested_at: datetime | None
    enqueued_by: str
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
