"""Every error that agentd raises on purpose.

AgentdError                what happened, and in `hint` what to do next
├── ConfigError            a setting or the home is wrong
├── StoreError             the database can not be used
│   ├── StoreBusy          another process holds it for too long
│   ├── StoreUnusable      not ours, newer, damaged, read-only, on a network file system
│   └── StoreFailed        a write failed for good (disk full, input/output error)
├── NotFound               no task, session or tool of that name
├── Refused                the request contradicts the state: a cycle, a finished task
├── ModelError             the model did not answer
├── ToolDefinitionError    a tool is written wrongly
└── ToolError              told to the model: kind, message, next step
RunLost                    a signal, no failure: the task is no longer this run's
"""

from collections.abc import Sequence
from enum import StrEnum

from agentd.domain.ids import RunId, TaskId


class AgentdError(Exception):
    """Something a person can act on. Never shown as a traceback.

    `hint` says what to do next; `retryable` whether the same thing may work later.
    """

    retryable = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\n{hint}")


class ConfigError(AgentdError):
    """A setting, or the home itself, is wrong."""


class StoreError(AgentdError):
    """The database can not be used."""


class StoreBusy(StoreError):
    """Another process holds the database and does not let go."""

    retryable = True


class StoreUnusable(StoreError):
    """The file is not one that this agentd can open; nothing was changed."""


class StoreFailed(StoreError):
    """The write did not happen, or nobody knows: the engine failed and was reopened."""

    retryable = True


class NotFound(AgentdError):
    """There is nothing of that id or name."""

    def __init__(self, what: str, name: str, *, hint: str | None = None) -> None:
        self.what, self.name = what, name
        super().__init__(f"no {what} {name!r}", hint=hint)


class Refused(AgentdError):
    """The request contradicts the state of things."""


class CycleRefused(Refused):
    """The `after` of a task leads back to itself. `cycle` starts and ends with the same id."""

    def __init__(self, cycle: Sequence[TaskId]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(
            "these tasks would wait for each other for ever: " + " → ".join(cycle),
            hint="Leave one of them out of `after`.",
        )


class StillRunning(Refused):
    """A transaction that had to end the task has not done it."""


class ModelErrorKind(StrEnum):
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    BROKEN_STREAM = "broken_stream"
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    INVALID_REQUEST = "invalid_request"
    SCRIPT = "script"


TRANSIENT = frozenset(
    {
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.OVERLOADED,
        ModelErrorKind.SERVER,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.CONNECTION,
        ModelErrorKind.BROKEN_STREAM,
    }
)


class ModelError(AgentdError):
    """The model did not answer. The message is the provider's own.

    `retry_after_s`: seconds that the provider asks to wait, None when it did not say.
    `status`: HTTP status, None when there was no response. `unsent`: the request never left.
    """

    def __init__(  # noqa: PLR0913 - the facts of a failed call
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        hint: str | None = None,
        unsent: bool = False,
    ) -> None:
        self.kind = kind
        self.unsent = unsent
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.retryable = kind in TRANSIENT
        super().__init__(message, hint=hint)


class ToolDefinitionError(AgentdError):
    """A tool is written so that it can not be offered: its name, a parameter or a type."""


class ToolError(AgentdError):
    """Raised by a tool to tell the model what went wrong and what to try next.

    error_type: snake_case, stable; callers branch on it, never on the message.
    """

    def __init__(
        self, error_type: str, message: str, *, next_action_hint: str | None = None
    ) -> None:
        self.error_type = error_type
        self.next_action_hint = next_action_hint
        super().__init__(message, hint=next_action_hint)


class RunLost(Exception):
    """The task is no longer this run's: cancelled, taken over or ended. Stop without writing."""

    def __init__(self, task_id: TaskId, run_id: RunId) -> None:
        self.task_id, self.run_id = task_id, run_id
        super().__init__(f"run {run_id} no longer owns task {task_id}")
