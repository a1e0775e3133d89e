"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

from agentd.domain.capability import Capability


class HandClock(Capability):
    def __init__(self) -> None:
        self._now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Somebody sets the time of day; the steady clock does not notice."""
        self._now += timedelta(seconds=seconds)
