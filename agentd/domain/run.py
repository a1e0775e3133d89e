"""A run: one claim of a task by a worker."""

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.ids import DaemonId, RunId, SessionId, TaskId


@dataclass(frozen=True, slots=True)
class Run(Capability):
    """Who is acting. `token` rises with each claim and stands in every write of the run."""

    id: RunId
    task_id: TaskId
    session_id: SessionId
    daemon_id: DaemonId
    attempt: int
    token: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class CallKey(Capability):
    """Of one tool call; the same when the call is run again after a crash.

    What is idempotent hands `text` to the outside, so that a repetition is recognised there.
    """

    text: str
