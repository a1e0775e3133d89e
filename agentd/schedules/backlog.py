"""What becomes of the occurrences that are due by now. Pure: the same for every daemon."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from agentd.domain.schedule import Missed, Occurrence, Outcome
from agentd.schedules.trigger import Trigger

_COUNTED_MOST = 100_000  # of a backlog: ten weeks of every minute; what is beyond is not counted
_NOBODY = "nobody was there"
_MERGED = "one run stands for all that were missed"
_TOO_MANY = "more were missed than are made up for"


@dataclass(frozen=True, slots=True)
class Rules:
    """`late_s`: an occurrence that old counts as missed. `most`: so many does `Missed.ALL` run."""

    missed: Missed
    late_s: float
    most: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """`fire`: occurrences to fire, oldest first. `missed`: lines of the ledger for the others."""

    fire: Sequence[datetime]
    missed: Sequence[Occurrence]
    next_due: datetime | None


def backlog(trigger: Trigger, first_due: datetime, now: datetime, rules: Rules) -> Backlog:
    """Of everything from `first_due` to `now`. `first_due` is not later than `now`."""
    kept, passed = _newest(trigger, first_due, now, rules.most)
    next_due = trigger.next_after(now)
    match rules.missed:
        case Missed.ALL:
            return Backlog(kept, _line(passed, _TOO_MANY), next_due)
        case Missed.ONCE:
            passed.take(kept[:-1])
            return Backlog(kept[-1:], _line(passed, _MERGED), next_due)
        case Missed.SKIP:
            in_time = [due for due in kept if now - due <= timedelta(seconds=rules.late_s)]
            passed.take(kept[: len(kept) - len(in_time)])
            return Backlog(in_time, _line(passed, _NOBODY), next_due)


@dataclass(slots=True)
class _Passed:
    """A stretch of occurrences for which nothing is done."""

    first: datetime | None = None
    last: datetime | None = None
    times: int = 0
    uncounted: bool = False

    def take(self, dues: Iterable[datetime]) -> None:
        for due in dues:
            self.first = self.first or due
            self.last = due
            self.times += 1


def _newest(
    trigger: Trigger, first_due: datetime, now: datetime, most: int
) -> tuple[list[datetime], _Passed]:
    """The newest `most`, and what came before them."""
    kept: deque[datetime] = deque([first_due])
    passed = _Passed()
    for due in trigger.after(first_due):
        if due > now:
            break
        kept.append(due)
        if len(kept) > most:
            passed.take([kept.popleft()])
        if passed.times >= _COUNTED_MOST:
            kept = deque(_last(trigger, now, most))
            passed.last, passed.uncounted = kept[0] - timedelta(microseconds=1), True
            break
    return list(kept), passed


def _last(trigger: Trigger, now: datetime, most: int) -> list[datetime]:
    """The last `most` occurrences until `now`; there are more than that."""
    back = timedelta(minutes=1)
    while True:
        found = list(takewhile(lambda due: due <= now, trigger.after(now - back)))
        if len(found) >= most:
            return found[-most:]
        back *= 2


def _line(passed: _Passed, reason: str) -> list[Occurrence]:
    if passed.first is None:
        return []
    through = passed.last if passed.times > 1 else None
    if passed.uncounted:
        reason = f"{reason}; there were more than are counted here"
    return [Occurrence(passed.first, Outcome.MISSED, reason, passed.times, through)]
