"""When a definition is due. APScheduler's triggers; its own cron reads weekdays and days of change
of daylight saving time unlike cron does, so cron expressions go to cronsim.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Protocol, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from cronsim import CronSim, CronSimError

from agentd.domain.errors import Refused
from agentd.domain.moment import parse_duration

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SHORTEST_S = 1.0
_FIRST_YEAR, _LAST_YEAR = 1970, 9000  # what the database can give back
_STEPPED = re.compile(r"\*(?:/(\d+))?")
_EVERY = re.compile(r"every\s+(.+)", re.IGNORECASE)
_HINT = (
    "Write a cron expression of five fields (0 9 * * 1-5) or @daily, an interval (every 90m), or a "
    "moment (2026-12-24T18:00)."
)


class _Due(Protocol):
    """What APScheduler's triggers are; it has no types of its own."""

    def get_next_fire_time(
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None: ...


class _Cron(BaseTrigger):
    """Five fields as cron reads them: weekday 0 and 7 are Sunday, day and weekday combine with or.

    In spring a time that the day does not have fires at the end of the gap; in autumn one that the
    day has twice fires once.
    """

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._expression = expression
        self._zone = zone

    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride] - untyped base
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None:
        del previous_fire_time
        return next(CronSim(self._expression, now.astimezone(self._zone)), None)


@dataclass(frozen=True, slots=True)
class Trigger:
    """The occurrences of one definition, in UTC. `every_s`: of an interval."""

    inner: _Due
    every_s: float | None = None

    def next_after(self, moment: datetime) -> datetime | None:
        """The first occurrence later than `moment`; None: there is none any more."""
        found = self.inner.get_next_fire_time(None, moment)
        if self.every_s is not None and found is not None and found <= moment:
            # An interval also gives `moment` itself, or, reckoning in floats, what is just before.
            found = self.inner.get_next_fire_time(None, moment + timedelta(milliseconds=1))
        # In the hour that autumn repeats, cron gives times of its first pass.
        while found is not None and found <= moment:
            later = self.inner.get_next_fire_time(None, found)
            found = later if later != found else None
        return found.astimezone(UTC) if found is not None else None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """All occurrences later than `moment`."""
        due = self.next_after(moment)
        while due is not None:
            yield due
            due = self.next_after(due)


def read_trigger(expression: str, timezone: str, anchor: datetime) -> Trigger:
    """What `expression` means. `anchor`: what intervals count from. Raises Refused."""
    zone = _zone(timezone)
    text = expression.strip()
    if every := _EVERY.fullmatch(text):
        return _interval(expression, every[1], anchor)
    if text.startswith("@") or len(text.split()) > 1:
        return _cron(expression, text, zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{expression!r} is no time to run at", hint=_HINT) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise Refused(f"{expression!r} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return Trigger(cast("_Due", DateTrigger(moment, timezone=UTC)))


def _interval(expression: str, text: str, anchor: datetime) -> Trigger:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise Refused(f"{expression!r}: {error}", hint=_HINT) from None
    if seconds < _SHORTEST_S:
        raise Refused(f"{expression!r} is too short an interval", hint=_HINT)
    start = anchor.replace(microsecond=0) + timedelta(seconds=seconds)
    trigger = IntervalTrigger(seconds=round(seconds), start_date=start, timezone=UTC)
    return Trigger(cast("_Due", trigger), every_s=seconds)


def _cron(expression: str, text: str, zone: ZoneInfo) -> Trigger:
    fields = _MACROS.get(text.lower(), text)
    if len(fields.split()) != 5:
        raise Refused(f"{expression!r} is no cron expression of five fields", hint=_HINT)
    try:
        CronSim(fields, datetime.now(UTC))
    except CronSimError as error:
        raise Refused(f"{expression!r} is no cron expression: {error}", hint=_HINT) from None
    return Trigger(_Cron(_explicit(fields), zone))


def _explicit(fields: str) -> str:
    """With the minutes written out where the hour is fixed.

    cronsim takes a minute with a star for a matter of the running clock, and would fire it in both
    passes of the hour that autumn repeats, and never in the one that spring leaves out.
    """
    minute, hour, *rest = fields.split()
    stepped = _STEPPED.fullmatch(minute)
    if stepped is None or hour.startswith("*"):
        return fields
    minutes = range(0, 60, int(stepped[1] or 1))
    return " ".join([",".join(map(str, minutes)), hour, *rest])


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Refused(
            f"{name!r} is no time zone", hint="Write an IANA name, e.g. Europe/Berlin or UTC."
        ) from None
