"""Moments as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.moment import parse_moment

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", NOW + timedelta(seconds=90)),
        ("in 2h30m", NOW + timedelta(hours=2, minutes=30)),
        (" 1.5 D ", NOW + timedelta(hours=36)),
        ("1w 1d", NOW + timedelta(days=8)),
        ("2026-12-24", datetime(2026, 12, 24, tzinfo=UTC)),
        ("2026-12-24T18:00+01:00", datetime(2026, 12, 24, 17, tzinfo=UTC)),
    ],
)
def test_a_duration_counts_from_now_and_a_moment_without_an_offset_is_utc(
    text: str, moment: datetime
) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5",
        "2h later",
        "-1h",
        "2026-02-30",
        "9999999999w",
        "9999-12-31T23:59-12:00",
        "0001-01-01T00:00+14:00",
        "1500-01-01",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"2h30m|1970"):
        parse_moment(text, NOW)


_ZONES = [UTC, timezone(timedelta(hours=-9, minutes=-30)), timezone(timedelta(hours=14))]


_FIRST, _LAST = datetime(1971, 1, 1), datetime(8999, 1, 1)  # noqa: DTZ001 - bounds have none


@given(st.datetimes(_FIRST, _LAST, timezones=st.sampled_from(_ZONES)))
def test_any_moment_that_python_writes_is_read_back(moment: datetime) -> None:
    read = parse_moment(moment.isoformat(), NOW)
    assert read == moment
    assert read.tzinfo is UTC
