"""Turns rows into the objects of the domain."""

import json
from collections.abc import Sequence
from typing import Any

from agentd.domain.event import Event, EventKind
from agentd.domain.ids import DaemonId, RunId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.domain.session import Session
from agentd.domain.task import Limits, Priority, Task, TaskState

Row = dict[str, Any]
_SAME = [
    "prompt",
    "title",
    "after_any",
    "not_before",
    "key",
    "model",
    "schedule_id",
    "attempt",
    "token",
    "waiting_reason",
    "wake_at",
    "output",
    "error",
    "retryable",
    "cancel_requested_at",
    "enqueued_by",
    "created_at",
    "updated_at",
    "started_at",
    "finished_at",
]
_LIMITS = [
    "max_tool_iterations",
    "deadline_s",
    "max_attempts",
    "max_cost_microusd",
    "max_total_tokens",
]


def task(row: Row, after: Sequence[str]) -> Task:
    return Task(
        id=TaskId(row["id"]),
        session_id=SessionId(row["session_id"]),
        priority=Priority(row["priority"]),
        state=TaskState(row["state"]),
        after=tuple(TaskId(each) for each in after),
        limits=Limits(**{name: row[name] for name in _LIMITS}),
        wake_on_task=TaskId(row["wake_on_task"]) if row["wake_on_task"] else None,
        **{name: row[name] for name in _SAME},
    )


def run(row: Row) -> Run:
    """Of a row of `tasks` that is running."""
    return Run(
        id=RunId(row["run_id"]),
        task_id=TaskId(row["id"]),
        session_id=SessionId(row["session_id"]),
        daemon_id=DaemonId(row["daemon_id"]),
        attempt=row["attempt"],
        token=row["token"],
        started_at=row["started_at"],
    )


def event(row: Row) -> Event:
    return Event(
        session_id=SessionId(row["session_id"]),
        seq=row["seq"],
        kind=EventKind(row["kind"]),
        body=json.loads(row["body"]),
        task_id=TaskId(row["task_id"]) if row["task_id"] else None,
        run_id=RunId(row["run_id"]) if row["run_id"] else None,
        created_at=row["created_at"],
    )


def session(row: Row) -> Session:
    return Session(
        SessionId(row["id"]), row["title"], row["events"], row["created_at"], row["last_event_at"]
    )
