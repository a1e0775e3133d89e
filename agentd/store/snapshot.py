"""A private copy of the database as it was at one moment: whoever works on it disturbs nobody."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path

from agentd.domain.ids import new_id
from agentd.store.files import Progress, copy, remove, silent, standing_still
from agentd.store.hub import Hub
from agentd.store.instance import Instance
from agentd.store.schema import admit

# Folders of these names are taken away again after a kill: nobody else makes such ones.
_NAME = ".agentd-copy-"
_UNLOCKED = ".agentd-new-"
_OURS = re.compile(r"\.agentd-(?:copy|new)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def bring_up_to_date(path: Path, busy_s: float) -> None:
    """Open the database once, as every command does: migrations, and a log that was left behind.

    None is made where there is none. Raises StoreUnusable when it is damaged, newer or not ours.
    """
    if not path.exists():
        return
    hub = Hub(path, busy_s=busy_s, admit=admit)
    try:
        hub.attach()
    finally:
        hub.close()


@contextlib.contextmanager
def private_folder(parent: Path) -> Generator[Path]:
    """A folder that is gone after the block; those of processes that were killed go with it."""
    parent.mkdir(mode=0o700, exist_ok=True)
    for left in parent.glob(f"{_NAME}*"):
        if _OURS.fullmatch(left.name):
            _remove_if_left(left)
    name = new_id()
    folder = parent / f"{_NAME}{name}"
    unlocked = parent / f"{_UNLOCKED}{name}"
    unlocked.mkdir(mode=0o700)
    fd = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        unlocked.rename(folder)  # from now on others look whether it is locked
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def _remove_if_left(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # somebody else has just removed it
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(fd)


@contextlib.contextmanager
def snapshot(
    path: Path, folder: Path, busy_s: float, *, read_only: bool, progress: Progress = silent
) -> Generator[Instance]:
    """The copy, attached as `agentd`. The database is held for as long as copying it takes."""
    with private_folder(folder) as private:
        target = private / "agentd.duckdb"
        with standing_still(path, busy_s):
            copy(path, target, progress)
        with Instance(private) as instance:
            instance.attach(target, "agentd", read_only=read_only, shown=path)
            remove(target)  # open files live on; now nothing of it can be left behind
            instance.run("USE agentd")
            yield instance
