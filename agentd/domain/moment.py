"""Moments as people write them: ISO 8601, or a duration from now."""

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"(?:in\s+)?((?:\d+(?:\.\d+)?\s*[smhdw]\s*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_moment(text: str, now: datetime) -> datetime:
    """An aware moment. "90s", "2h30m", "1d" count from `now`; ISO without an offset means UTC.

    Raises ValueError, whose text says what is expected.
    """
    duration = _DURATION.fullmatch(text.strip())
    try:
        if duration:
            parts = _PART.findall(duration[1])
            return now + timedelta(
                seconds=sum(float(count) * _SECONDS[unit.lower()] for count, unit in parts)
            )
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is neither a moment (2026-12-24T18:00+01:00) nor a duration (90s, 2h30m, 1d)"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
