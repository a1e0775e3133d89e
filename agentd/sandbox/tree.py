"""All processes that a process has started, and those that they have: as /proc shows them."""

import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, parents first."""
    return crowd(pid, 1_000_000).pids


@dataclass(frozen=True, slots=True)
class Crowd:
    """`pids`: parents first. `threads`: how many these have together, one each at the least."""

    pids: list[int]
    threads: int


def crowd(pid: int, most: int) -> Crowd:
    """What is below `pid`. Looks no further when that is more than `most` threads."""
    found: list[int] = []
    threads, todo = 0, deque([pid])
    while todo and threads <= most:
        children = _children(todo.popleft())
        found += children
        for child in children[: most + 1]:
            threads += _threads(child)
            if threads > most:  # the threads of one process alone can be too many to go through
                break
            todo.append(child)
    return Crowd(found[: most + 1], threads)


def marked(variable: str) -> list[int]:
    """The processes whose environment holds `NAME=value`, wherever they have gone."""
    wanted = variable.encode()
    return [
        int(path.name)
        for path in (_PROC.iterdir() if _PROC.is_dir() else ())
        if path.name.isdecimal() and wanted in _read(path / "environ").split(b"\0")
    ]


def memory_bytes(pids: Iterable[int], *, shared_once: bool = False) -> int:
    """What they have in memory. `shared_once`: what several share counts once; it takes longer."""
    return sum(_proportional(pid) if shared_once else _resident(pid) for pid in pids)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """To each of them that is still there and ours."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for thread in (_PROC / str(pid) / "task").iterdir():
            found += map(int, _read(thread / "children").split())
    return found


def _threads(pid: int) -> int:
    try:
        return max(1, (_PROC / str(pid) / "task").stat().st_nlink - 2)
    except OSError:  # it has ended meanwhile
        return 1


def _resident(pid: int) -> int:
    fields = _read(_PROC / str(pid) / "statm").split()
    return int(fields[1]) * _PAGE_BYTES if fields else 0


def _proportional(pid: int) -> int:
    for line in _read(_PROC / str(pid) / "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return _resident(pid)  # it can not be asked


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile, or is another user's
        return b""
