"""What becomes of the occurrences that are due: every one is accounted for, once."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.schedule import Missed, Occurrence
from agentd.schedules.backlog import Backlog, Rules, backlog
from agentd.schedules.trigger import read_trigger

_START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_HOURLY = read_trigger("0 * * * *", "UTC", _START)
_FIRST = _START + timedelta(hours=1)


def found(missed: Missed, hours: float, most: int = 100) -> Backlog:
    now = _START + timedelta(hours=hours)
    return backlog(_HOURLY, _FIRST, now, Rules(missed, late_s=60, most=most))


def test_a_backlog_becomes_one_run() -> None:
    made = found(Missed.ONCE, 5.5)
    assert [due.hour for due in made.fire] == [17]
    (line,) = made.missed
    assert (line.due_at.hour, line.times, line.through and line.through.hour) == (13, 4, 16)
    assert made.next_due == _START + timedelta(hours=6)


def test_one_that_is_late_still_runs() -> None:
    made = found(Missed.ONCE, 1.9)
    assert [due.hour for due in made.fire] == [13]
    assert not made.missed


def test_missed_ones_can_be_passed_over() -> None:
    made = found(Missed.SKIP, 5.5)
    assert not made.fire
    assert made.missed[0].times == 5
    in_time = found(Missed.SKIP, 5.01)
    assert [due.hour for due in in_time.fire] == [17]
    assert in_time.missed[0].times == 4


def test_all_are_made_up_for_up_to_a_bound() -> None:
    made = found(Missed.ALL, 5.5, most=3)
    assert [due.hour for due in made.fire] == [15, 16, 17]
    assert made.missed[0].times == 2


@pytest.mark.parametrize(("missed", "runs"), [(Missed.ONCE, 1), (Missed.ALL, 100)])
def test_a_backlog_beyond_counting_runs_the_newest(missed: Missed, runs: int) -> None:
    every = read_trigger("every 1s", "UTC", _START)
    now = _START + timedelta(days=400)
    made = backlog(every, _START + timedelta(seconds=1), now, Rules(missed, 60, 100))
    assert (len(made.fire), made.fire[-1]) == (runs, now)
    (line,) = made.missed
    assert line.times >= 100_000
    assert "more than are counted" in (line.reason or "")
    assert line.through is not None
    assert line.through < made.fire[0]
    assert made.next_due == now + timedelta(seconds=1)


def covered(made: Backlog) -> list[datetime]:
    """The occurrences that a backlog accounts for."""
    stretches = [_stretch(line) for line in made.missed]
    return sorted([*made.fire, *(due for each in stretches for due in each)])


def _stretch(line: Occurrence) -> list[datetime]:
    last = line.through or line.due_at
    before = line.due_at - timedelta(seconds=1)
    dues = list(takewhile(lambda due: due <= last, _HOURLY.after(before)))
    assert len(dues) == line.times
    return dues


@given(
    st.sampled_from(Missed),
    st.lists(st.floats(0.01, 30), min_size=1, max_size=6),
    st.integers(1, 5),
)
def test_whenever_a_daemon_looks_each_occurrence_is_accounted_for_once(
    missed: Missed, pauses_h: list[float], most: int
) -> None:
    now, due, accounted = _START, _FIRST, list[datetime]()
    for pause in pauses_h:
        now += timedelta(hours=pause)
        if due <= now:
            made = backlog(_HOURLY, due, now, Rules(missed, 60, most))
            accounted += covered(made)
            assert made.next_due is not None
            due = made.next_due
    assert accounted == list(takewhile(lambda each: each <= now, _HOURLY.after(_START)))
