"""A control group for each command, where the machine lets us make one: there the kernel counts.

Of the first kind (v1): below the group that we are in ourselves, which takes root. Of the second
(v2): beside it, where systemd has delegated its parent to us (`Delegate=`, `DelegateSubgroup=`).
Elsewhere the limits of single processes and the watch have to do.
"""

import contextlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agentd.domain.ids import new_id
from agentd.sandbox.limits import Limits

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "agentd-command-"
# The watch is to see that it is too much, and to say so, before the kernel refuses any more.
_MARGIN_PROCESSES, _MARGIN_MB = 64, 256


class ControlGroup:
    """Made by `control_group`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, pid: int) -> None:
        """Put a process into it, and with it all that it will start."""
        with contextlib.suppress(OSError):  # it has ended; or may not be moved, and the watch sees
            (self._folder / "cgroup.procs").write_text(str(pid))


@contextmanager
def control_group(limits: Limits) -> Generator[ControlGroup | None]:
    """A group with these limits while the block runs; None where none can be made."""
    folder = _made(limits)
    try:
        yield ControlGroup(folder) if folder is not None else None
    finally:
        if folder is not None:
            _remove(folder)


def _made(limits: Limits) -> Path | None:
    try:
        parent = _parent()
        if parent is None:
            return None
        for left in parent.glob(f"{_PREFIX}*"):
            _remove(left)  # of a daemon that was killed; one at work is not empty, and stays
        folder = parent / f"{_PREFIX}{new_id()}"
        folder.mkdir()
        (folder / "pids.max").write_text(str(limits.processes + _MARGIN_PROCESSES))
        memory = folder / "memory.max"
        if memory.exists():
            memory.write_text(str((limits.memory_mb + _MARGIN_MB) << 20))
    except OSError:
        return None
    return folder


def _parent() -> Path | None:
    """Where a group can be made. Raises OSError."""
    own = dict(_memberships())
    if "pids" in own:
        return _ROOT / "pids" / own["pids"].lstrip("/")
    if "" not in own or own[""] == "/":
        return None
    parent = (_ROOT / own[""].lstrip("/")).parent
    control = parent / "cgroup.subtree_control"
    if not {"pids", "memory"} <= set(control.read_text().split()):
        control.write_text("+pids +memory")
    return parent


def _memberships() -> list[tuple[str, str]]:
    """The groups that this process is in: by controller, "" for all those of the second kind."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return [
        (name, path)
        for _, names, path in (line.split(":", 2) for line in lines)
        for name in names.split(",")
    ]


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not empty: what is in it is about to end
        folder.rmdir()
