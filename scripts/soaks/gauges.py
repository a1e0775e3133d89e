"""What is measured while the soak runs, and how much of it may grow."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import median

import anyio

_WARM_UP, _WINDOW = 0.25, 0.25  # parts of the whole: before the first window; each window
_PAGE = os.sysconf("SC_PAGE_SIZE")

Latencies = Mapping[str, Sequence[tuple[float, float]]]  # name → seconds from the start, ms


@dataclass(frozen=True, slots=True)
class Sample:
    """`at_s` from the start. The first daemon's memory and descriptors; of the home, the rest."""

    at_s: float
    memory_mb: float
    descriptors: int
    processes: int
    file_mb: float
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure in the first window and in the last one. `at_most`: what the last may be."""

    name: str
    start: float
    end: float
    at_most: float
    unit: str = ""

    @property
    def ok(self) -> bool:
        return self.end <= self.at_most


@dataclass
class Gauges:
    home: Path
    pid: int
    acknowledged: Callable[[], int]
    samples: list[Sample] = field(default_factory=list[Sample])

    async def run(self, started_s: float, every_s: float, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self.samples.append(self._sample(time.monotonic() - started_s))
            await anyio.sleep(every_s)

    def _sample(self, at_s: float) -> Sample:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return Sample(
            at_s=at_s,
            memory_mb=pages * _PAGE / 1e6,
            descriptors=len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
            processes=len(processes_of(self.home)),
            file_mb=_size_mb(self.home),
            acknowledged=self.acknowledged(),
        )


def processes_of(home: Path) -> list[int]:
    """All processes that were started for this home, also those whose daemon is gone."""
    mark = f"AGENTD_HOME={home}\0".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended in between
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def growths(samples: Sequence[Sample], latencies: Latencies, seconds: float) -> list[Growth]:
    """Each figure as medians of two windows: after the warm-up, and at the end."""
    early = (_WARM_UP * seconds, (_WARM_UP + _WINDOW) * seconds)
    late = ((1 - _WINDOW) * seconds, seconds)
    first = [each for each in samples if early[0] <= each.at_s < early[1]]
    last = [each for each in samples if late[0] <= each.at_s < late[1]]

    def of(name: str, window: Sequence[Sample]) -> float:
        return median(getattr(each, name) for each in window)

    memory, descriptors = of("memory_mb", first), of("descriptors", first)
    return [
        Growth("memory of a daemon", memory, of("memory_mb", last), 1.1 * memory + 10, "MB"),
        Growth("open descriptors", descriptors, of("descriptors", last), descriptors + 8),
        # The daemons, each with a server and its guard; one of them twice while it is replaced.
        Growth("processes", of("processes", first), of("processes", last), 9),
        _file_per_task(first, last),
        *chain.from_iterable(_latency(name, each, early, late) for name, each in latencies.items()),
    ]


def _file_per_task(first: Sequence[Sample], last: Sequence[Sample]) -> Growth:
    """The journal is kept, so the file grows; what must not is its growth for each task."""
    before, middle, after = first[0], first[-1], last[-1]
    start = middle.file_mb / max(1, middle.acknowledged) * 1000
    tasks = after.acknowledged - before.acknowledged
    end = (after.file_mb - before.file_mb) / max(1, tasks) * 1000
    return Growth("database file per task", start, end, 1.5 * start + 10, "kB")


def _latency(
    name: str,
    measured: Sequence[tuple[float, float]],
    early: tuple[float, float],
    late: tuple[float, float],
) -> list[Growth]:
    first, last = ([ms for at_s, ms in measured if a <= at_s < b] for a, b in (early, late))
    if not first or not last:
        return []  # a run this short may have no quiet moment in a window
    return [Growth(name, median(first), median(last), 2 * median(first) + 100, "ms")]


def _size_mb(home: Path) -> float:
    size = 0
    for name in ("agentd.duckdb", "agentd.duckdb.wal"):
        with suppress(FileNotFoundError):
            size += (home / name).stat().st_size
    return size / 1e6
