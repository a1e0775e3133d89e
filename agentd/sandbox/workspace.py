"""Files below the roots. The only way by which tools reach a file system."""

import difflib
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.domain.ids import new_id
from agentd.sandbox.roots import Identity, Root, Territory, identity
from agentd.sandbox.walk import (
    Parents,
    Place,
    is_special,
    os_failure,
    read_only,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

ENTRIES_MOST = 100_000  # of a listing: a command can make millions
_COMPARED_MOST = 200  # names, with one that does not exist: 2 ms each, when they are long

Names = list[str]
EntryType = Literal["file", "dir", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. `path`: from the workspace, absolute in another root.

    `size`: bytes; 0 for what is no file.
    """

    path: str
    type: EntryType
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """`path`: as in Entry. `created`: there was no such file before."""

    path: str
    size: int
    created: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands at a path: `content` None when there is nothing. `path`: as in Entry.

    `mode`: the permissions, 0600 for what is not there yet.
    """

    path: str
    content: bytes | None
    mode: int


class Workspace(Capability):
    """The folders that tools may read and write. Every method blocks: call it in a thread.

    Relative paths start in `root`; `more` are reached by absolute paths. `hidden`: folders that do
    not exist for tools, wherever they lie.
    """

    __slots__ = ("_territory",)

    def __init__(
        self, root: Path, more: Sequence[Root] = (), *, hidden: Sequence[Path] = ()
    ) -> None:
        roots = (Root(root), *more)
        self._territory = Territory(
            roots,
            tuple(_both_names(each.path) for each in roots),
            tuple(each.resolve() for each in hidden),
        )

    @contextmanager
    def open(self, path: str) -> Generator[BinaryIO]:
        """The regular file at `path`, for reading. Raises ToolError."""
        with self._place(path) as place:
            fd = self._open(place, path)
        with os.fdopen(fd, "rb") as file:
            yield file

    def write(self, path: str, data: bytes, *, mode: int = 0o600) -> Written:
        """Put `data` there: after a crash the old or the new content is there, whole.

        Missing folders are made. A new file gets `mode`, an old one keeps its own. Raises
        ToolError.
        """
        with self._place(path, parents="make") as place:
            old = replaceable(place, path)
            try:
                _replace(place, data, stat.S_IMODE(old.st_mode) if old else mode)
            except OSError as error:
                raise os_failure(error, path) from error
            return Written(place.shown, len(data), old is None)

    def delete(self, path: str) -> str:
        """Remove the file, or the link itself; the path of what is gone. Raises ToolError."""
        with self._place(path, keep_link=True) as place:
            found = place.stat()
            if found is None:
                raise self._why(FileNotFoundError(), place, path)
            if not stat.S_ISLNK(found.st_mode):
                replaceable(place, path)
            elif not place.root.writable:
                raise read_only(path, place.root)
            try:
                os.unlink(place.name, dir_fd=place.directory)
                os.fsync(place.directory)
            except OSError as error:
                raise os_failure(error, path) from error
            return place.shown

    def look(self, path: str, *, most_bytes: int) -> Standing:
        """What is there now, to be changed: it may be nothing, in folders that are not there yet.

        Raises ToolError for what can not be changed: a folder, a link, a read-only root.
        """
        with self._place(path, parents="may_miss") as place:
            if not replaceable(place, path):
                return Standing(place.shown, None, 0o600)
            shown = place.shown
            with os.fdopen(self._open(place, path), "rb") as file:
                content = file.read(most_bytes + 1)
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if len(content) > most_bytes:
            raise ToolError("too_large", f"{path} is larger than {most_bytes} bytes")
        return Standing(shown, content, mode)

    def find(self, path: str) -> str:
        """The path of the file or folder without its links, as in Entry. Raises ToolError."""
        with self._place(path) as place:
            found = place.stat()
            if found is None:
                raise self._why(FileNotFoundError(), place, path)
            if is_special(found):
                raise _no_file(path)
            if stat.S_ISDIR(found.st_mode):
                os.close(self._open_folder(place, path))
            return place.shown

    def refuse_link(self, path: str) -> None:
        """Raise ToolError when the path ends in a link: which of the two is meant is not clear."""
        with self._place(path, keep_link=True) as place:
            found = place.stat()
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise ToolError(
                "is_a_link", f"{path} is a symlink", next_action_hint="Name the file it leads to."
            )

    @contextmanager
    def place(
        self, path: str, *, parents: Parents = "exist", made: Names | None = None
    ) -> Generator[Place]:
        """For who changes several files at once. Raises ToolError."""
        with self._place(path, parents=parents, made=made) as place:
            yield place

    def list(self, path: str, *, depth: int = 1) -> list[Entry]:
        """What is in the folder, by name, `depth` levels deep; links are not followed.

        Of more than `ENTRIES_MOST` entries, some.
        """
        with self._place(path) as place:
            fd, shown = self._open_folder(place, path), place.shown
        hidden = self._territory.out_of_sight()
        try:
            found = _entries(fd, "" if shown == "." else f"{shown}/", depth, hidden)
            return list(islice(found, ENTRIES_MOST))
        finally:
            os.close(fd)

    def _open_folder(self, place: Place, path: str) -> int:
        try:
            return place.open_folder(place.name)
        except OSError as error:
            raise self._why(error, place, path) from error

    def _place(
        self,
        path: str,
        *,
        parents: Parents = "exist",
        keep_link: bool = False,
        made: Names | None = None,
    ) -> Place:
        try:
            return Place(self._territory, path, parents=parents, keep_link=keep_link, made=made)
        except OSError as error:
            raise ToolError(
                "no_workspace",
                f"the folder {error.filename} of the workspace can not be opened: {error.strerror}",
                next_action_hint="Only the owner of this agentd can mend that ([workspace]).",
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
        with os.scandir(place.directory) as scanned:
            names = [each.name for each in islice(scanned, _COMPARED_MOST)]
        near = difflib.get_close_matches(place.name, names, n=3, cutoff=0.6)
        ahead = "" if folder == "." else f"{folder}/"
        hint = f"There is {' and '.join(ahead + each for each in near)}. " if near else ""
        return ToolError(
            "not_found",
            f"{path} does not exist",
            next_action_hint=f"{hint}ls {folder} shows what is there.",
        )


def _both_names(path: Path) -> tuple[Path, Path]:
    return path.resolve(), path.absolute()


def replaceable(place: Place, path: str) -> os.stat_result | None:
    """What stands there, which is a file that may be changed, or None. Raises ToolError."""
    found = place.stat()
    if place.name == "." or (found is not None and stat.S_ISDIR(found.st_mode)):
        raise ToolError(
            "is_a_folder", f"{path} is a folder", next_action_hint=f"ls {path} lists it."
        )
    if found is not None and is_special(found):
        raise _no_file(path)
    if not place.root.writable:
        raise read_only(path, place.root)
    return found


def _no_file(path: str) -> ToolError:
    return ToolError("not_a_file", f"{path} is neither a file nor a folder (a pipe, a device)")


def write_beside(place: Place, name: str, data: bytes, mode: int) -> None:
    """A whole file on the disk, in the folder that is held open, for a rename. Raises OSError."""
    fd = os.open(name, _NEW, 0o600, dir_fd=place.directory)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place.directory)
        raise


def move_over(place: Place, beside: str) -> None:
    """What lies beside takes the place's name. Raises OSError."""
    try:
        os.rename(beside, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=place.directory)
        raise


def _replace(place: Place, data: bytes, mode: int) -> None:
    """Write beside, then rename over: both in the folder that is held open."""
    beside = f".agentd-{new_id()}.tmp"
    write_beside(place, beside, data, mode)
    move_over(place, beside)
    os.fsync(place.directory)


def _entries(fd: int, prefix: str, depth: int, hidden: set[Identity]) -> Iterator[Entry]:
    with os.scandir(fd) as scanned:
        found = sorted(islice(scanned, ENTRIES_MOST), key=lambda each: each.name)
        for each in found:
            try:
                facts = each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since the folder was read
            if hidden and identity(facts) in hidden:
                continue
            kind = _type(facts.st_mode)
            yield Entry(prefix + each.name, kind, facts.st_size if kind == "file" else 0)
            if kind == "dir" and depth > 1:
                yield from _below(fd, each.name, prefix, depth, hidden)


def _below(fd: int, name: str, prefix: str, depth: int, hidden: set[Identity]) -> Iterator[Entry]:
    try:
        below = os.open(name, _FOLDER, dir_fd=fd)
    except OSError:
        return  # not ours to read, or gone: it stands in the list all the same
    try:
        yield from _entries(below, f"{prefix}{name}/", depth - 1, hidden)
    finally:
        os.close(below)


def _type(mode: int) -> EntryType:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
