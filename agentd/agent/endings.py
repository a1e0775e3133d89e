"""What follows from a reply that carries out no tool call. Pure: the journal decides.

Stop reasons as the API documents them: end_turn, stop_sequence, tool_use, max_tokens, pause_turn,
refusal, model_context_window_exceeded, compaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.errors import AgentdError
from agentd.domain.event import Event, EventKind
from agentd.domain.task import TaskState
from agentd.store.runs import Ending

INPUT_REQUIRED = "input_required"  # the error type of a call that a person must answer first
ITERATIONS_USED_UP = "I'm having trouble completing this task."
_CONTINUATIONS_MOST = 3  # replies cut off in a row before the task fails; seed 004 has the same

_REMINDER = (
    "You ended your turn without a tool call, but the task is still open. If it is done, call "
    "complete_task with a summary; if it can not be done, call fail_task; if it has to wait, call "
    "wait_task. Otherwise go on with the next tool call."
)
_CUT_OFF = (
    "Your reply was cut off at its limit of tokens; tool calls in it were not carried out. Go on "
    "where it stopped, in smaller steps: write long content in several calls."
)


@dataclass(frozen=True, slots=True)
class Remind:
    """Say this to the model and ask again."""

    text: str


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Send the conversation back unchanged."""


def after_reply(  # noqa: PLR0911 - one return for each stop reason
    own: Sequence[Event], *, reminders_most: int
) -> Ending | Remind | AskAgain:
    """What to do after a reply without calls. `own`: the events of this task, the reply last."""
    reply = own[-1]
    text = text_of(reply)
    match reply.body["stop_reason"]:
        case "pause_turn" | "compaction":
            return AskAgain()
        case "max_tokens":
            if _in_a_row(own, _CUT_OFF) < _CONTINUATIONS_MOST:
                return Remind(_CUT_OFF)
            return _failed("the reply was cut off at max_tokens again and again", text)
        case "refusal":
            return _failed("the model refused to go on", text, retryable=False)
        case "model_context_window_exceeded":
            why = "the conversation has outgrown the model's context window"
            return _failed(why, text, retryable=False)
        case _:
            if _in_a_row(own, _REMINDER) < reminders_most:
                return Remind(_REMINDER)
            return _failed("ended without a terminal tool", text)


def iterations_used_up(own: Sequence[Event], limit: int) -> Ending | None:
    """The ending of a task that has had `limit` replies (0 = unlimited), or None."""
    replies = [event for event in own if event.kind is EventKind.ASSISTANT]
    if limit == 0 or len(replies) < limit:
        return None
    why = f"{ITERATIONS_USED_UP} It was not done after {limit} replies (max_tool_iterations)."
    return _failed(why, text_of(replies[-1]))


def input_required(own: Sequence[Event], wake_at: datetime) -> Ending | None:
    """The ending of a run whose last calls asked something that only a person can answer."""
    asked: str | None = None
    for event in reversed(own):
        if event.kind in (EventKind.USER, EventKind.ASSISTANT):
            break
        body = event.body
        if event.kind is EventKind.TOOL_RESULT and body.get("error_type") == INPUT_REQUIRED:
            asked = str(body.get("data", {}).get("reason"))
    if asked is None:
        return None
    return Ending("waiting", TaskState.WAITING, waiting_reason=asked, wake_at=wake_at)


def deadline_passed(own: Sequence[Event], deadline_s: float) -> Ending:
    replies = [event for event in own if event.kind is EventKind.ASSISTANT]
    why = f"it was not done within {deadline_s:g} s (deadline_seconds)"
    return _failed(why, text_of(replies[-1]) if replies else "")


def failed_by(error: AgentdError) -> Ending:
    """The ending of a run that an error stopped; one that may pass is tried again."""
    may_pass = error.retryable
    return Ending(
        "failed", TaskState.FAILED, error=str(error), retryable=may_pass, transient=may_pass
    )


def text_of(reply: Event) -> str:
    """What a reply says, without its thinking and its calls."""
    texts = [block["text"] for block in reply.body["content"] if block["type"] == "text"]
    return "\n".join(texts).strip()


def _in_a_row(own: Sequence[Event], reminder: str) -> int:
    """How often this reminder was the answer to the latest replies without a call."""
    count = 0
    for event in reversed(own):
        if event.kind in (EventKind.TOOL_RESULT, EventKind.TOOL_CALL):
            break
        if event.kind is EventKind.USER and event.body["text"] == reminder:
            count += 1
    return count


def _failed(error: str, output: str, *, retryable: bool = True) -> Ending:
    return Ending("failed", TaskState.FAILED, output or None, error, retryable)
