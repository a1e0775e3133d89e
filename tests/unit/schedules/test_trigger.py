"""When a definition is due: cron as cron reads it, days of change, intervals, moments."""

import tomllib
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.errors import Refused
from agentd.schedules.trigger import read_trigger

_CASES = tomllib.loads((Path(__file__).parent / "cron_cases.toml").read_text())
_NOW = datetime(2026, 11, 20, 12, 0, 30, 250, tzinfo=UTC)


def dues(expression: str, start: str, count: int, zone: str = "UTC") -> list[str]:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    found = islice(read_trigger(expression, zone, _NOW).after(begin), count)
    return [due.strftime("%Y-%m-%d %H:%M") for due in found]


@pytest.mark.parametrize(("start", "expression", "following"), _CASES["cases"])
def test_cron_is_read_as_another_library_reads_it(
    start: str, expression: str, following: str
) -> None:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    found = read_trigger(expression, "UTC", _NOW).next_after(begin)
    assert found == datetime.fromisoformat(following).replace(tzinfo=UTC)


@pytest.mark.parametrize("expression", _CASES["never"])
def test_a_day_that_no_month_has_is_refused(expression: str) -> None:
    with pytest.raises(Refused, match="no cron expression"):
        read_trigger(expression, "UTC", _NOW)


@pytest.mark.parametrize("sunday", ["0", "7", "sun", "SUN"])
def test_sunday_has_two_numbers(sunday: str) -> None:
    expected = ["2026-11-22 09:00", "2026-11-29 09:00"]
    assert dues(f"0 9 * * {sunday}", "2026-11-20", 2) == expected


def test_weekdays_are_those_of_cron() -> None:
    week = ["2026-11-20 09:00", "2026-11-23 09:00", "2026-11-24 09:00"]  # Friday, Monday, Tuesday
    assert dues("0 9 * * 1-5", "2026-11-20", 3) == week


def test_in_spring_a_time_that_the_day_does_not_have_fires_once() -> None:
    found = dues("30 2 * * *", "2027-03-13T00:00", 3, "America/New_York")
    assert found == ["2027-03-13 07:30", "2027-03-14 07:00", "2027-03-15 06:30"]


def test_in_autumn_a_time_that_the_day_has_twice_fires_once() -> None:
    found = dues("30 1 * * *", "2026-10-31T00:00", 3, "America/New_York")
    assert found == ["2026-10-31 05:30", "2026-11-01 05:30", "2026-11-02 06:30"]


def test_in_the_repeated_hour_the_next_one_is_found_and_not_lost() -> None:
    """Half past two has been there in the first pass; it is a quarter past two in the second."""
    start = "2027-10-31T01:15"
    assert dues("30 2 * * *", start, 1, "Europe/Berlin") == ["2027-11-01 01:30"]
    assert dues("15,30,45 2 * * *", start, 1, "Europe/Berlin") == ["2027-11-01 01:15"]
    assert dues("30 2 31 10 *", start, 1, "Europe/Berlin") == ["2028-10-31 01:30"]


def test_a_fixed_hour_with_steps_is_neither_doubled_nor_lost() -> None:
    autumn = dues("*/20 2 * * *", "2027-10-30T22:00", 4, "Europe/Berlin")
    assert autumn[:3] == ["2027-10-31 00:00", "2027-10-31 00:20", "2027-10-31 00:40"]
    assert autumn[3] == "2027-11-01 01:00"
    spring = dues("*/20 2 * * *", "2027-03-27T12:00", 2, "Europe/Berlin")
    assert spring == ["2027-03-28 01:00", "2027-03-29 00:00"]


def test_an_hourly_one_fires_each_hour_on_the_days_of_change() -> None:
    for start in ("2027-03-14T00:00", "2026-11-01T00:00"):
        begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
        found = list(islice(read_trigger("0 * * * *", "America/New_York", _NOW).after(begin), 24))
        assert {b - a for a, b in pairwise(found)} == {timedelta(hours=1)}


def test_an_interval_counts_from_its_beginning_whenever_it_is_asked() -> None:
    trigger = read_trigger("every 90m", "UTC", _NOW)
    anchor = _NOW.replace(microsecond=0)
    first = [anchor + n * timedelta(minutes=90) for n in (1, 2, 3)]
    assert list(islice(trigger.after(_NOW), 3)) == first
    assert trigger.next_after(first[0]) == first[1]
    assert trigger.next_after(first[0] + timedelta(minutes=1)) == first[1]


def test_a_moment_is_due_once() -> None:
    trigger = read_trigger("2026-12-24T18:00", "Europe/Berlin", _NOW)
    (due,) = trigger.after(_NOW)
    assert due == datetime(2026, 12, 24, 17, tzinfo=UTC)
    assert trigger.next_after(due) is None


@given(
    seconds=st.integers(1, 200_000),
    began_us=st.integers(0, 999_999),
    number=st.integers(1, 1_000_000),
    beside_us=st.one_of(st.integers(-1100, 1100), st.integers(-(10**9), 10**9)),
)
def test_an_interval_leaves_none_out_however_close_one_asks(
    seconds: int, began_us: int, number: int, beside_us: int
) -> None:
    began = _NOW.replace(microsecond=began_us)
    step = timedelta(seconds=seconds)
    first = began.replace(microsecond=0) + step
    moment = first + number * step + timedelta(microseconds=beside_us)
    passed = max(0, (moment - first) // step + 1)
    found = read_trigger(f"every {seconds}s", "UTC", began).next_after(moment)
    assert found == first + passed * step


_UNREADABLE = ["", "soon", "every", "every now", "every 0s", "every 200000d", "2026-13-01T00:00"]
_UNREADABLE += ["* * * *", "* * * * * *", "60 * * * *", "0 9 * * 8", "@reboot"]


def test_a_moment_does_not_care_for_the_zone_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "XYZ-3")
    (due,) = read_trigger("2026-12-24T18:00", "UTC", _NOW).after(_NOW)
    assert due == datetime(2026, 12, 24, 18, tzinfo=UTC)


def test_a_moment_that_the_database_could_not_give_back_is_refused() -> None:
    with pytest.raises(Refused, match="between the years"):
        read_trigger("9999-12-31T23:59:59-12:00", "UTC", _NOW)


@pytest.mark.parametrize("expression", _UNREADABLE)
def test_what_can_not_be_read_is_refused_with_an_example(expression: str) -> None:
    with pytest.raises(Refused) as refused:
        read_trigger(expression, "UTC", _NOW)
    assert "0 9 * * 1-5" in (refused.value.hint or "")


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(Refused, match="'Mars/Phobos' is no time zone"):
        read_trigger("@daily", "Mars/Phobos", _NOW)


@given(
    expression=st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 9 * * 1-5", "every 61s", "@daily"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001 - made aware below
)
def test_each_occurrence_is_later_than_the_one_before(
    expression: str, zone: str, start: datetime
) -> None:
    begin = start.replace(tzinfo=UTC)
    found = list(islice(read_trigger(expression, zone, _NOW).after(begin), 20))
    assert all(a < b for a, b in pairwise([begin, *found]))
