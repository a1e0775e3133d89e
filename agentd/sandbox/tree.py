"""All processes that a process has started, and those that they have: as /proc shows them."""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


def descendants(pid: int, most: int = 1_000_000) -> list[int]:
    """The processes below `pid`, parents first; no more than `most`, for there may be ever more."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) < most:
        children = _children(todo.pop(0))
        found += children
        todo += children
    return found[:most]


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
