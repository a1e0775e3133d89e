"""Moments as people write them: ISO 8601, or a duration from now."""

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"(?:in\s+)?((?:\d+(?:\.\d+)?\s*[smhdw]\s*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1970, 9000  # what the database can give back
_LONGEST_S = 100 * 365.25 * 86400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_duration(text: str) -> float:
    """Seconds of "90s", "2h30m", "1d". Raises ValueError, whose text says what is expected."""
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        raise ValueError(f"{text!r} is no duration (90s, 2h30m, 1d)")
    parts = _PART.findall(duration[1])
    seconds = sum(float(count) * _SECONDS[unit.lower()] for count, unit in parts)
    if seconds > _LONGEST_S:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return seconds


def parse_moment(text: str, now: datetime) -> datetime:
    """A moment in UTC. "90s", "2h30m", "1d" count from `now`; ISO without an offset means UTC.

    Raises ValueError, whose text says what is expected.
    """
    try:
        if _DURATION.fullmatch(text.strip()):
            moment = now + timedelta(seconds=parse_duration(text))
        else:
            moment = datetime.fromisoformat(text.strip())
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is neither a moment (2026-12-24T18:00+01:00) nor a duration (90s, 2h30m, 1d)"
        ) from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"{text!r} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return moment


def parse_past(text: str, now: datetime) -> datetime:
    """The same, but durations count back from `now`. Raises ValueError."""
    moment = parse_moment(text, now)
    if not _DURATION.fullmatch(text.strip()):
        return moment
    return now - min(moment - now, now - _BEGINNING)
