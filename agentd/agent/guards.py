"""Recognises a task that goes round in circles. Pure: the journal decides, also after a crash.

A streak is first told to the model; if it goes on for as long again, the task fails with that
reason. Whatever is said to the session in between, and every wait_task, begins a new one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.agent.dispatch import digest
from agentd.agent.transcript import Block, tool_calls
from agentd.domain.event import Event, EventKind
from agentd.domain.task import TaskState
from agentd.store.runs import Ending

_CYCLE_MOST = 4  # calls of one round: A-B-A-B, and up to A-B-C-D
_WAITED_S = 2.0  # a round with a call that took so long waits for something: it may be polling
_TEXT = (
    "You are going round in circles: {what}. Doing the same again will not help. Look at what the "
    "results say and take another way; if it has to wait for something, call wait_task; if it can "
    "not be done, call fail_task with the reason. If this goes on, the task will be ended."
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a streak may get; 0: for ever.

    `same_result`: equal calls with equal results. `same_call`: equal calls (or rounds of them) with
    whatever result. `alternation`: equal rounds of two to four calls, results included. `errors`:
    failed calls in a row.
    """

    same_result: int = 3
    same_call: int = 8
    alternation: int = 3
    errors: int = 6


@dataclass(frozen=True, slots=True)
class Tell:
    """Say this to the model. `rule`: which streak it is about."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class _Step:
    """One call with its result. `told`: the rules of which the model was told right after it."""

    tool: str
    arguments: str
    result: Any
    is_error: bool
    waited: bool
    told: frozenset[str]

    def same_call(self, other: "_Step") -> bool:
        return (self.tool, self.arguments) == (other.tool, other.arguments)

    def same(self, other: "_Step") -> bool:
        return self.same_call(other) and self.result == other.result


@dataclass(frozen=True, slots=True)
class _Streak:
    """The newest `length` calls are one; `bound` calls are allowed."""

    rule: str
    length: int
    bound: int
    what: str


def circling(own: Sequence[Event], bounds: Bounds) -> Tell | Ending | None:
    """What to do about the newest calls. `own`: the events of this task."""
    longest = max(bounds.same_call, bounds.same_result, bounds.alternation) * _CYCLE_MOST
    said = [event for event in own if not event.inside]
    steps = list(_newest(said, 2 * max(longest, bounds.errors) + _CYCLE_MOST))
    if steps and steps[0].told:
        return None  # whatever else there is to say: one thing at a time
    for streak in _streaks(steps, bounds):
        decision = _decide(streak, steps)
        if decision is not None:
            return decision
    return None


def _decide(streak: _Streak, steps: Sequence[_Step]) -> Tell | Ending | None:
    """None: the model was told, and has not gone on for as long again."""
    for since, step in enumerate(steps[: streak.length]):
        if streak.rule in step.told:
            if since < streak.bound:
                return None
            error = f"going round in circles: {streak.what}, although it was told so"
            return Ending("failed", TaskState.FAILED, None, error)
    return Tell(streak.rule, _TEXT.format(what=streak.what))


def _streaks(steps: Sequence[_Step], bounds: Bounds) -> Iterator[_Streak]:
    """Those that are too long."""
    for period in range(1, min(_CYCLE_MOST, len(steps)) + 1):
        if period == 1 or not _is_one_call(steps[:period]):
            yield from _repetitions(steps, period, bounds)
    errors = next((n for n, step in enumerate(steps) if not step.is_error), len(steps))
    if 0 < bounds.errors <= errors:
        yield _Streak("errors", errors, bounds.errors, f"the last {errors} calls have all failed")


def _repetitions(steps: Sequence[_Step], period: int, bounds: Bounds) -> Iterator[_Streak]:
    names = " and ".join(dict.fromkeys(step.tool for step in reversed(steps[:period])))
    who = f"the same call of {names}" if period == 1 else f"the same calls ({names})"
    rule = "same_result" if period == 1 else "alternation"
    bound = bounds.same_result if period == 1 else bounds.alternation
    equal = _rounds(steps, period, _Step.same)
    if 0 < bound <= equal and not any(step.waited for step in steps[:period]):
        what = f"{who} gave the same result {equal} times in a row"
        yield _Streak(rule, equal * period, bound * period, what)
    alike = _rounds(steps, period, _Step.same_call)
    if 0 < bounds.same_call <= alike:
        what = f"{who} came {alike} times in a row"
        yield _Streak("same_call", alike * period, bounds.same_call * period, what)


def _is_one_call(steps: Sequence[_Step]) -> bool:
    """A round of equal calls is no round of its own: a shorter period has seen it."""
    return all(steps[0].same_call(step) for step in steps)


def _rounds(steps: Sequence[_Step], period: int, equal: Callable[[_Step, _Step], bool]) -> int:
    """How often the newest `period` calls come in a row, without a break."""
    length = period
    while length < len(steps) and equal(steps[length], steps[length - period]):
        length += 1
    return length // period


def _newest(own: Sequence[Event], least: int) -> Iterator[_Step]:
    """The answered calls, newest first, back to the last message that somebody sent.

    No more turns than it takes to see `least` calls and what was told before the newest turn.
    """
    turns = count = 0
    results: dict[str, Event] = {}
    intents: dict[str, Event] = {}
    told: set[str] = set()
    for event in reversed(own):
        body = event.body
        if event.kind is EventKind.TOOL_RESULT:
            results[body["call_id"]] = event
        elif event.kind is EventKind.TOOL_CALL:
            intents[body["call_id"]] = event
        elif event.kind is EventKind.USER and body["source"] == "message":
            return
        elif event.kind is EventKind.USER and body["source"] == "guard":
            told.add(body["rule"])
        elif event.kind is EventKind.ASSISTANT and tool_calls(event):
            for block in reversed(tool_calls(event)):
                if block["id"] in results:
                    yield _step(event, block, results[block["id"]], intents, frozenset(told))
                    told.clear()
                    count += 1
            turns += 1
            if count >= least and turns > 2:
                return


def _step(
    reply: Event, block: Block, result: Event, intents: dict[str, Event], told: frozenset[str]
) -> _Step:
    call_id: str = block["id"]
    intent = intents.get(call_id)
    if intent is not None:
        arguments: str = intent.body["digest"]
        waited = (result.created_at - intent.created_at).total_seconds() >= _WAITED_S
    else:  # refused before it began
        arguments = digest(reply.body.get("invalid_inputs", {}).get(call_id, block["input"]))
        waited = False
    content, is_error = result.body["content"], result.body["is_error"]
    return _Step(block["name"], arguments, (content, is_error), is_error, waited, told)
