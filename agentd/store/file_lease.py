"""The turnstile of the shared database file: fair, visible turns between processes.

Two lock files stand beside the database. Whoever wants in holds `.turn` while it waits, so that the
holder sees it; whoever has the file attached holds `.lease`. Both are `flock`s: the kernel drops
them when a process dies, and the database file itself is never opened for it.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from agentd.domain.errors import StoreBusy, StoreUnusable

_POLL_S = 0.0003  # a blocking flock has no timeout; this is its shortest sleep here
_POLL_MAX_S = 0.005
_PATIENT_AFTER_S = 0.1
_PID_LENGTH, _WORDS_LENGTH = 11, 160  # of the lease file's two lines


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(
            f"can not make the lock file {path}: {error.strerror}",
            hint=f"Give this user write access to {path.parent}; look whether the disk is full.",
        ) from error


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class FileLease:
    """The right of one process to hold the database file. Used from one thread only.

    The lease file names its holder, for error messages, and then what the last one left to say.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._turn_path = database.with_name(database.name + ".turn")
        self._lease_path = database.with_name(database.name + ".lease")
        self._turn_fd = self._lease_fd = -1
        self.held = False
        self.last_words = ""  # of whoever held it before; none when that one was killed

    def acquire(self, timeout_s: float) -> float:
        """Seconds waited. Raises StoreBusy when another process keeps the file for `timeout_s`."""
        if self._turn_fd < 0:
            self._turn_fd = _open_lock(self._turn_path)
        if self._lease_fd < 0:
            self._lease_fd = _open_lock(self._lease_path)
        started = time.monotonic()
        self._wait_for(self._turn_fd, started, timeout_s)
        try:
            self._wait_for(self._lease_fd, started, timeout_s)
        finally:
            fcntl.flock(self._turn_fd, fcntl.LOCK_UN)
        self.held = True
        words = os.pread(self._lease_fd, _WORDS_LENGTH, _PID_LENGTH)
        self.last_words = words.decode(errors="replace").strip()
        self._write("")
        return time.monotonic() - started

    def wanted(self) -> bool:
        """Whether another process waits for the file that this one holds."""
        if _try_lock(self._turn_fd):
            fcntl.flock(self._turn_fd, fcntl.LOCK_UN)
            return False
        return True

    def release(self, last_words: str = "") -> None:
        if self.held:
            self._write(last_words)
            fcntl.flock(self._lease_fd, fcntl.LOCK_UN)
            self.held = False

    def _write(self, words: str) -> None:
        """Always as long, so that a full disk has room for it; without it nothing is lost."""
        record = f"{os.getpid():<{_PID_LENGTH - 1}}\n{words:<{_WORDS_LENGTH}}"
        with contextlib.suppress(OSError):
            os.pwrite(self._lease_fd, record.encode(), 0)

    def close(self) -> None:
        self.release()
        for fd in (self._turn_fd, self._lease_fd):
            if fd >= 0:
                os.close(fd)
        self._turn_fd = self._lease_fd = -1

    def _wait_for(self, fd: int, started: float, timeout_s: float) -> None:
        while not _try_lock(fd):
            waited = time.monotonic() - started
            if waited > timeout_s:
                raise StoreBusy(
                    f"{self._database} is in use: {self._holder()} did not let go of it "
                    f"within {timeout_s:g} s",
                    hint="If that process hangs or is stopped (Ctrl-Z, SIGSTOP), continue it "
                    "or end it: nothing is lost.",
                )
            time.sleep(_POLL_S if waited < _PATIENT_AFTER_S else _POLL_MAX_S)

    def _holder(self) -> str:
        pid = os.pread(self._lease_fd, _PID_LENGTH, 0).decode(errors="replace").strip()
        command = ""
        with contextlib.suppress(OSError, ValueError):
            words = Path(f"/proc/{int(pid)}/cmdline").read_bytes().split(b"\0")
            command = b" ".join(words[:4]).decode(errors="replace").strip()
        return f"process {pid or '?'}" + (f" ({command})" if command else "")
