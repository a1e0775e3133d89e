"""The lock that says that a daemon lives: the kernel drops it the moment the process dies."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from agentd.domain.ids import DaemonId


def _lock_path(run_directory: Path, daemon_id: DaemonId) -> Path:
    return run_directory / f"{daemon_id}.alive"


def is_alive(run_directory: Path, daemon_id: DaemonId) -> bool:
    """Whether that daemon's process still runs, on this machine or in a container beside it."""
    try:
        fd = os.open(_lock_path(run_directory, daemon_id), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # of another user: nobody can tell, and taking over would be the worse mistake
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def alive_ones(run_directory: Path) -> set[DaemonId]:
    """Daemons that hold their lock."""
    return {each for each in _known(run_directory) if is_alive(run_directory, each)}


def dead_ones(run_directory: Path) -> set[DaemonId]:
    """Daemons that have left their lock file behind and hold it no more."""
    return {each for each in _known(run_directory) if not is_alive(run_directory, each)}


def _known(run_directory: Path) -> set[DaemonId]:
    return {DaemonId(path.stem) for path in run_directory.glob("*.alive")}


def forget(run_directory: Path, daemon_id: DaemonId) -> None:
    """Remove what a dead daemon left in `run/`."""
    for suffix in ("sock", "health.json", "health.json.new", "alive"):
        (run_directory / f"{daemon_id}.{suffix}").unlink(missing_ok=True)


class Presence:
    """Holds the lock while the daemon runs.

    The file stays until somebody has seen to what the daemon left running: `forget`.
    """

    def __init__(self, run_directory: Path, daemon_id: DaemonId) -> None:
        self._path = _lock_path(run_directory, daemon_id)
        self._fd = -1

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        unseen = self._path.with_suffix(".locking")  # else one who looks now would take us for dead
        self._fd = os.open(unseen, flags, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unseen.rename(self._path)
        os.write(self._fd, f"{os.getpid()}\n".encode())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
