"""The only file that may read the time; everything else is given a `Clock`."""

import time
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from agentd.domain.capability import Capability


@runtime_checkable
class Clock(Protocol):
    """Where time comes from. Tests hand in one that they move by hand."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back. For durations."""
        ...


class SystemClock(Capability):
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
