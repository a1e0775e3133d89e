"""Files below one folder. The only way by which tools reach a file system."""

import difflib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.domain.ids import new_id
from agentd.sandbox.walk import Place, is_special, os_failure

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

EntryType = Literal["file", "dir", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. `path`: from the root. `size`: bytes; 0 for what is no file."""

    path: str
    type: EntryType
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """`path`: from the root. `created`: there was no such file before."""

    path: str
    size: int
    created: bool


class Workspace(Capability):
    """The folder that tools may read and write. Every method blocks: call it in a thread."""

    __slots__ = ("_given", "_root")

    def __init__(self, root: Path) -> None:
        self._given = str(root.absolute())
        self._root = str(root.resolve())

    @contextmanager
    def open(self, path: str) -> Generator[BinaryIO]:
        """The regular file at `path`, for reading. Raises ToolError."""
        with self._place(path) as place:
            fd = self._open(place, path)
        with os.fdopen(fd, "rb") as file:
            yield file

    def write(self, path: str, data: bytes) -> Written:
        """Put `data` there: after a crash the old or the new content is there, whole.

        Missing folders are made. A new file gets mode 0600, an old one keeps its own. Raises
        ToolError.
        """
        with self._place(path, make_parents=True) as place:
            old = place.stat()
            if place.name == "." or (old is not None and stat.S_ISDIR(old.st_mode)):
                raise ToolError("is_a_folder", f"{path} is a folder")
            if old is not None and is_special(old):
                raise _no_file(path)
            try:
                _replace(place, data, stat.S_IMODE(old.st_mode) if old else 0o600)
            except OSError as error:
                raise os_failure(error, path) from error
            return Written(place.shown, len(data), old is None)

    def list(self, path: str, *, depth: int = 1) -> list[Entry]:
        """What is in the folder, by name, `depth` levels deep; links are not followed."""
        with self._place(path) as place:
            try:
                fd = os.open(place.name, _FOLDER, dir_fd=place.directory)
            except OSError as error:
                raise self._why(error, place, path) from error
            shown = place.shown
        try:
            return list(_entries(fd, "" if shown == "." else f"{shown}/", depth))
        finally:
            os.close(fd)

    def _place(self, path: str, *, make_parents: bool = False) -> Place:
        try:
            return Place(self._root, path, also=self._given, make_parents=make_parents)
        except OSError as error:
            raise ToolError(
                "no_workspace",
                f"the workspace {self._given} can not be opened: {error.strerror}",
                next_action_hint="Only the owner of this agentd can mend that (workspace.path).",
            ) from error

    def _open(self, place: Place, path: str) -> int:
        try:
            fd = os.open(place.name, _READ, dir_fd=place.directory)
        except OSError as error:
            raise self._why(error, place, path) from error
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            return fd
        os.close(fd)
        if stat.S_ISDIR(mode):
            raise ToolError(
                "is_a_folder", f"{path} is a folder", next_action_hint=f"ls {path} lists it."
            )
        raise _no_file(path)

    def _why(self, error: OSError, place: Place, path: str) -> ToolError:
        if not isinstance(error, FileNotFoundError):
            return os_failure(error, path)
        folder = os.path.dirname(place.shown) or "."  # noqa: PTH120 - text, not a file
        names = os.listdir(place.directory)  # noqa: PTH208 - of a descriptor
        near = difflib.get_close_matches(place.name, names, n=3, cutoff=0.6)
        ahead = "" if folder == "." else f"{folder}/"
        hint = f"There is {' and '.join(ahead + each for each in near)}. " if near else ""
        return ToolError(
            "not_found",
            f"{path} does not exist",
            next_action_hint=f"{hint}ls {folder} shows what is there.",
        )


def _no_file(path: str) -> ToolError:
    return ToolError("not_a_file", f"{path} is neither a file nor a folder (a pipe, a device)")


def _replace(place: Place, data: bytes, mode: int) -> None:
    """Write beside, then rename over: both in the folder that is held open."""
    beside = f".agentd-{new_id()}.tmp"
    fd = os.open(beside, _NEW, 0o600, dir_fd=place.directory)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(beside, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=place.directory)
        raise
    os.fsync(place.directory)


def _entries(fd: int, prefix: str, depth: int) -> Iterator[Entry]:
    with os.scandir(fd) as scanned:
        found = sorted(scanned, key=lambda each: each.name)
        for each in found:
            try:
                facts = each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since the folder was read
            kind = _type(facts.st_mode)
            yield Entry(prefix + each.name, kind, facts.st_size if kind == "file" else 0)
            if kind == "dir" and depth > 1:
                yield from _below(fd, each.name, prefix, depth)


def _below(fd: int, name: str, prefix: str, depth: int) -> Iterator[Entry]:
    try:
        below = os.open(name, _FOLDER, dir_fd=fd)
    except OSError:
        return  # not ours to read, or gone: it stands in the list all the same
    try:
        yield from _entries(below, f"{prefix}{name}/", depth - 1)
    finally:
        os.close(below)


def _type(mode: int) -> EntryType:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
