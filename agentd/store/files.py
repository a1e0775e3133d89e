"""The database as files: copied, made durable, put in place, only while nobody has it open.

The lease keeps every agentd out, so the bytes stand still; and this process has the file attached
nowhere, so closing a descriptor of it drops no lock. A crash leaves the old files or the new ones.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from pathlib import Path

from agentd.domain.errors import NotFound, StoreBusy, StoreFailed
from agentd.private_files import create, sync
from agentd.store.file_lease import FileLease
from agentd.store.filesystem import refuse_network_filesystem

Progress = Callable[[str, int, int], None]  # what, how much is done, of how much
# The log, and what a checkpoint that was cut off may leave beside it.
_COMPANIONS = (".wal", ".wal.checkpoint", ".wal.recovery")
_CHUNK_BYTES = 4 << 20


def silent(_what: str, _done: int, _total: int) -> None:
    """No progress shown."""


@contextlib.contextmanager
def standing_still(path: Path, busy_s: float, *, must_exist: bool = True) -> Generator[None]:
    """Nobody has the database open while the block runs. Raises StoreBusy, NotFound."""
    refuse_network_filesystem(path)
    lease = FileLease(path)
    lease.acquire(busy_s)
    try:
        if path.exists():
            _refuse_strangers(path)
        elif must_exist:
            raise NotFound("database", str(path), hint="Restore a backup: agentd db restore FILE")
        yield
    finally:
        lease.close()


def _refuse_strangers(path: Path) -> None:
    """The duckdb shell and its like know nothing of the lease; DuckDB's own lock shows them."""
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreBusy(
                f"another program has {path} open", hint="Close it (the duckdb shell?), try again."
            ) from error


def companions(path: Path) -> list[Path]:
    """The files beside the database that belong to it now."""
    beside = [path.with_name(path.name + ending) for ending in _COMPANIONS]
    return [each for each in beside if each.exists()]


def size_bytes(path: Path) -> int:
    """Of the database, with what stands beside it."""
    return sum(each.stat().st_size for each in (path, *companions(path)) if each.exists())


def copy(path: Path, target: Path, progress: Progress = silent, *, forgiving: bool = False) -> None:
    """Copy the database with its log to a new place. Call it in `standing_still`.

    forgiving: what the disk can not read becomes zeros.
    """
    total, done = size_bytes(path), 0
    for source in (path, *companions(path)):
        there = target.with_name(target.name + source.name.removeprefix(path.name))
        with source.open("rb") as file, create(there) as out:
            for chunk in _chunks(file.fileno(), source.stat().st_size, forgiving=forgiving):
                _write_whole(out, chunk)
                done += len(chunk)
                progress("copying", done, total)


def _write_whole(fd: int, chunk: bytes) -> None:
    """A nearly full disk or a quota takes a part without an error; the next write says so."""
    left = memoryview(chunk)
    while left:
        left = left[os.write(fd, left) :]


def _chunks(fd: int, length: int, *, forgiving: bool) -> Generator[bytes]:
    at = 0
    while at < length:
        try:
            chunk = os.pread(fd, min(_CHUNK_BYTES, length - at), at)
        except OSError:
            if not forgiving:
                raise
            chunk = _readable(fd, min(_CHUNK_BYTES, length - at), at)
        if not chunk:
            raise StoreFailed("the database became shorter while it was copied")
        at += len(chunk)
        yield chunk


def _readable(fd: int, length: int, at: int) -> bytes:
    """Sector by sector; zeros for those that can not be read."""
    parts: list[bytes] = []
    for offset in range(at, at + length, 4096):
        size = min(4096, at + length - offset)
        try:
            parts.append(os.pread(fd, size, offset))
        except OSError:
            parts.append(bytes(size))
    return b"".join(parts)


def publish(new: Path, path: Path) -> None:
    """Give a finished file its name, durably; what had that name is gone."""
    new.chmod(0o600)
    sync(new)
    new.rename(path)
    sync(path.parent)


def replace(new: Path, path: Path, *, keep_as: Path) -> None:
    """Put `new` in the place of the database, which stays as `keep_as`, with its log.

    There is a database at `path` at every moment. Call it in `standing_still`.
    """
    if path.exists():
        os.link(path, keep_as)
    for each in companions(path):
        each.rename(keep_as.with_name(keep_as.name + each.name.removeprefix(path.name)))
    publish(new, path)


def remove(path: Path) -> None:
    """A database and everything that agentd puts beside one."""
    locks = (path.with_name(path.name + ending) for ending in (".turn", ".lease"))
    for each in (path, *companions(path), *locks):
        each.unlink(missing_ok=True)
