"""What the system says about this process: memory, descriptors, disk. And the lag of the loop."""

import os
import resource
import shutil
import statistics
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from agentd.domain.clock import Clock

_MB = 1_000_000
_EVERY_S = 1.0
_MOST_LAGS = 600


@dataclass(frozen=True, slots=True)
class Vitals:
    """None where the system does not tell. `descriptors_limit`: of this process."""

    memory_mb: float | None
    disk_free_mb: float | None
    descriptors: int | None
    descriptors_limit: int


def measure(home: Path) -> Vitals:
    """Of this process, now. Reads a few small files; may block where the disk of `home` does."""
    memory_mb = disk_free_mb = descriptors = None
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        memory_mb = pages * os.sysconf("SC_PAGE_SIZE") / _MB
    with suppress(OSError):
        disk_free_mb = shutil.disk_usage(home).free / _MB
    with suppress(OSError):
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Vitals(memory_mb, disk_free_mb, descriptors, limit)


@dataclass(frozen=True, slots=True)
class Lag:
    """How late the event loop came to a timer since it was asked last.

    `usual_s` is the median: one long stop (SIGSTOP, a suspended machine) leaves it small.
    """

    longest_s: float
    usual_s: float


class LagMeter:
    """A timer that goes off each second and notes how late. Costs some microseconds of it."""

    def __init__(self, clock: Clock, every_s: float = _EVERY_S) -> None:
        self._clock = clock
        self._every_s = every_s
        self._lags: deque[float] = deque(maxlen=_MOST_LAGS)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            before = self._clock.monotonic()
            await anyio.sleep(self._every_s)
            self._lags.append(max(0.0, self._clock.monotonic() - before - self._every_s))

    def take(self) -> Lag:
        """Since the last call."""
        lags = list(self._lags) or [0.0]
        self._lags.clear()
        return Lag(max(lags), statistics.median(lags))
