"""How much a command may take: of one process by the kernel, of all of it by a watch.

The kernel's limits count a single process, and root is exempt from that on the number of processes;
so a watch counts the whole tree of a command again and again, and ends it when it is too much.
"""

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from agentd.sandbox.tree import crowd, memory_bytes

_MB = 1 << 20
_OFTEN_S, _OFTEN_UNTIL_S, _SELDOM_S = 0.05, 1.0, 0.25
_DISK, _DISK_LEAST = "commands.disk_mb", "commands.disk_least_mb"
_PRLIMIT = Path("/usr/bin/prlimit")
_NICE, _OOM_FIRST = 10, 500
_FILES_LEAST = 10_000
_ENTRY_BYTES = 4096  # what a name costs, however small its file


@dataclass(frozen=True, slots=True)
class Limits:
    """`processes`, `memory_mb`, `disk_mb`: of a command as a whole. The others: of one process.

    `disk_mb`: what a command on a branch may have written. `disk_least_mb`: what has to stay free.
    `tmp_mb`: of its /tmp.
    """

    processes: int = 512
    memory_mb: int = 4096
    cpu_s: int = 3600
    file_mb: int = 4096
    open_files: int = 4096
    tmp_mb: int = 512
    disk_mb: int = 8192
    disk_least_mb: int = 200


def limit_process(pid: int, limits: Limits) -> None:
    """Set the kernel's limits of a process; those that it starts inherit them. Linux only.

    It also stands behind the daemon: for the processor, and in front of it when memory runs out. So
    the watch comes to its turn, whatever it watches.
    """
    if not hasattr(resource, "prlimit"):
        return
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_DATA: limits.memory_mb * _MB,
        resource.RLIMIT_FSIZE: limits.file_mb * _MB,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    with contextlib.suppress(ProcessLookupError):
        for kind, value in wanted.items():
            _, hard = resource.prlimit(pid, kind)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (most, most))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(_OOM_FIRST))


def limited_from_start(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv`, started with its limits: a plain process does not wait until they are set."""
    if not _PRLIMIT.exists():
        return list(argv)
    options = {
        "cpu": limits.cpu_s,
        "data": limits.memory_mb * _MB,
        "fsize": limits.file_mb * _MB,
        "nofile": limits.open_files,
        "core": 0,
    }
    return [str(_PRLIMIT), *(f"--{name}={most}" for name, most in options.items()), "--", *argv]


def processes_limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv`, started so that the kernel counts its processes.

    To be said in the command's own namespace of users: there nobody else's are counted. Root is
    exempt; so is who has no `prlimit` (util-linux). The watch counts those.
    """
    if os.geteuid() == 0 or not _PRLIMIT.exists():
        return list(argv)
    return [str(_PRLIMIT), f"--nproc={limits.processes}", "--", *argv]


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at a command while it runs. `disk`: a folder of the disk that it writes to.

    `written`: the folders that hold what it has written, where that is known.
    """

    limits: Limits
    disk: Path
    written: tuple[Path, ...] = ()

    async def run(self, pid: int, exceeded: Callable[[str], None]) -> None:
        """Until cancelled, or until something is too much: then `exceeded` is told in words."""
        free_at_first = _free(self.disk)
        async with anyio.create_task_group() as looking:

            async def look(too_much: Callable[[], str | None]) -> None:
                reason = await _until(too_much)
                looking.cancel_scope.cancel()
                exceeded(reason)

            looking.start_soon(look, partial(self._too_much, pid))
            looking.start_soon(look, partial(self._too_full, free_at_first))

    def _too_much(self, pid: int) -> str | None:
        limits = self.limits
        most = limits.processes + 2  # bwrap's own are no more than two
        below = crowd(pid, most)
        if below.threads > most:
            return f"it had more than {limits.processes} processes and threads (commands.processes)"
        most = limits.memory_mb * _MB
        pids = below.pids
        if memory_bytes(pids) > most and memory_bytes(pids, shared_once=True) > most:
            return f"it took more than {limits.memory_mb} MB of memory (commands.memory_mb)"
        return None

    def _too_full(self, at_first: "_Free") -> str | None:
        limits, free = self.limits, _free(self.disk)
        if free.size_bytes < limits.disk_least_mb * _MB:
            return f"the disk had less than {limits.disk_least_mb} MB left ({_DISK_LEAST})"
        if limits.disk_least_mb and free.files < _FILES_LEAST <= at_first.files:
            return f"the disk had no room for {_FILES_LEAST} more files ({_DISK_LEAST})"
        most = limits.disk_mb * _MB
        if not self.written or at_first.size_bytes - free.size_bytes < most:
            return None  # others write, too; but it can not have written more than all together
        if size_bytes(self.written, most) > most:
            return f"it had written more than {limits.disk_mb} MB ({_DISK})"
        return None


async def _until(too_much: Callable[[], str | None]) -> str:
    """Ask again and again, in a thread of our own: a command can make one look take seconds, and
    those of all other work may hang.
    """
    own, started = anyio.CapacityLimiter(1), anyio.current_time()
    while True:
        young = anyio.current_time() - started < _OFTEN_UNTIL_S
        await anyio.sleep(_OFTEN_S if young else _SELDOM_S)
        reason = await anyio.to_thread.run_sync(too_much, abandon_on_cancel=True, limiter=own)
        if reason is not None:
            return reason


def is_disk_limit(exceeded: str | None) -> bool:
    """Whether a command was ended because of what it had written."""
    return exceeded is not None and (_DISK in exceeded or _DISK_LEAST in exceeded)


@dataclass(frozen=True, slots=True)
class _Free:
    """What an ordinary user may still write: how much, and how many files."""

    size_bytes: int
    files: int


def _free(folder: Path) -> _Free:
    try:
        found = os.statvfs(folder)
    except OSError:  # it was taken away; bwrap says so, or the command sees it
        return _Free(sys.maxsize, sys.maxsize)
    files = found.f_favail if found.f_files else sys.maxsize  # some disks do not count them
    return _Free(found.f_bavail * found.f_frsize, files)


def size_bytes(folders: tuple[Path, ...], most: int = sys.maxsize) -> int:
    """What is in them, as it lies on the disk; counted until it is more than `most`."""
    total = 0
    todo = [str(folder) for folder in folders]
    while todo and total <= most:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                total += _ENTRY_BYTES
                if total > most:
                    break
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
