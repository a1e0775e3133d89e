"""Files for their owner alone, there whole or not at all, also after a power cut."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def create(path: Path) -> Generator[int]:
    """The descriptor of a new file, 0600 from its first byte. Raises FileExistsError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def write(path: Path, data: bytes) -> None:
    """A new file with this content, on the disk. Raises FileExistsError."""
    with create(path) as fd, os.fdopen(fd, "wb", closefd=False) as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def put(path: Path, data: bytes) -> None:
    """The content of `path`, in place of what it held."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)  # of a process that was killed
    write(new, data)
    new.replace(path)
    sync(path.parent)
