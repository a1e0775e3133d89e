"""A schedule: a cron expression, an interval or a moment, and the prompt that it injects."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agentd.domain.ids import DaemonId, ScheduleId, SessionId, TaskId
from agentd.domain.task import Priority


class Missed(StrEnum):
    """What becomes of occurrences that nobody was there for."""

    ONCE = "once"  # one run for all of them
    SKIP = "skip"  # none
    ALL = "all"  # one run for each, up to a bound


class Overlap(StrEnum):
    """What becomes of an occurrence while the task of an earlier one is unfinished."""

    QUEUE = "queue"  # its task waits in the queue like any other
    SKIP = "skip"  # none


class Outcome(StrEnum):
    """What became of an occurrence."""

    FIRED = "fired"  # a task was enqueued
    SKIPPED = "skipped"  # the task of an earlier one was unfinished
    MISSED = "missed"  # nobody was there, or one run stands for several
    GATED = "gated"  # its gate said no


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """`expression`: cron ("0 9 * * 1-5", "@daily"), "every 90m", or a moment in ISO 8601.

    `timezone`: an IANA name, in which cron and a moment without an offset are read.
    `session_id` None: each task opens a session of its own. `gate`: a shell command; unless it
    exits with 0, no task is made.
    """

    expression: str
    prompt: str
    timezone: str = "UTC"
    title: str | None = None
    session_id: SessionId | None = None
    priority: Priority = Priority.MEDIUM
    model: str | None = None
    missed: Missed = Missed.ONCE
    overlap: Overlap = Overlap.QUEUE
    gate: str | None = None
    created_by: str = "cli"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`next_due` None: it will not fire any more by itself. `created_at` anchors intervals."""

    id: ScheduleId
    expression: str
    prompt: str
    timezone: str
    title: str | None
    session_id: SessionId | None
    priority: Priority
    model: str | None
    missed: Missed
    overlap: Overlap
    gate: str | None
    enabled: bool
    next_due: datetime | None
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One line of the ledger; a stretch of missed ones is one line.

    `times`: how many occurrences it stands for, the last of them at `through`.
    `due_at` of a trigger by hand is the moment of the trigger.
    """

    due_at: datetime
    outcome: Outcome
    reason: str | None = None
    times: int = 1
    through: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """An occurrence as it stands in the ledger."""

    schedule_id: ScheduleId
    occurrence: Occurrence
    task_id: TaskId | None
    daemon_id: DaemonId | None
    decided_at: datetime
