"""Follows a path below a folder, one component at a time, through directory descriptors.

Each component is opened with O_NOFOLLOW from the descriptor of the one before, and symlinks are
resolved here, so that nothing outside the roots is ever opened, even when another process changes
the tree meanwhile (no gap between a check and its use). `openat2(RESOLVE_BENEATH)` would do the
same in one system call; Python does not offer it.
"""

import errno
import os
import stat
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Literal, Self

from agentd.domain.errors import ToolError
from agentd.sandbox.roots import Root, Territory, identity

_LINKS_MOST = 40  # as Linux itself: path_resolution(7)
_DEEPEST = 100  # folders in a path: each takes a descriptor
_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DIRECTORY = _TOP | os.O_NOFOLLOW

Parents = Literal["exist", "make", "may_miss"]


@dataclass(frozen=True, slots=True)
class _Level:
    """A folder that is held open."""

    fd: int
    name: str
    root: Root


class Place:
    """Where a path leads: the open folder that holds it, and its name there.

    The name is no symlink (unless `keep_link`) and may not exist; it is "." when the path means the
    open folder itself. `parents`: whether missing folders are an error, are made (and noted in
    `made`), or stay in `missing`. A context manager; it owns the descriptors. Raises ToolError;
    OSError when a root itself can not be opened.
    """

    def __init__(
        self,
        territory: Territory,
        path: str,
        *,
        parents: Parents = "exist",
        keep_link: bool = False,
        made: list[str] | None = None,
    ) -> None:
        self._territory = territory
        self._asked = path
        self._parents: Parents = parents
        self._keep_link = keep_link
        self._marked = territory.identities()
        self._links = 0
        self._number, parts = self._components(path) or (0, list(PurePosixPath(path).parts))
        self._todo = deque(parts)
        self.name = "."
        self.missing: list[str] = []
        self._made = [] if made is None else made
        self._levels = [self._top()]
        try:
            self._walk()
        except BaseException:
            self.close()
            raise

    @property
    def directory(self) -> int:
        """The descriptor of the folder that holds the name."""
        return self._levels[-1].fd

    @property
    def root(self) -> Root:
        """The root whose permissions hold here."""
        return self._levels[-1].root

    @property
    def shown(self) -> str:
        """The path as people write it: from the workspace, or absolute in another root."""
        assert self._levels, "asked of a place that is closed"
        last = [] if self.name == "." else [self.name]
        return self._shown([*self._way(), *self.missing, *last])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._levels:
            os.close(self._levels.pop().fd)

    def stat(self) -> os.stat_result | None:
        """What stands there, or None."""
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_folder(self, name: str) -> int:
        """A descriptor of the folder `name`, which is in the one that is held. Raises OSError."""
        fd = os.open(name, _DIRECTORY, dir_fd=self.directory)
        if self._marked and self._marked.get(identity(os.fstat(fd)), self.root) is None:
            os.close(fd)
            raise self._outside()
        return fd

    def _walk(self) -> None:
        while self._todo:
            part = self._todo.popleft()
            if self.missing and part != "..":
                self._beyond(part)
            elif part == "..":
                self._up()
            elif not (self._keep_link and not self._todo) and (target := self._link_target(part)):
                self._follow(target)
            elif self._todo:
                self._down(part)
            else:
                self.name = part

    def _beyond(self, part: str) -> None:
        if self._todo:
            self.missing.append(part)
        else:
            self.name = part

    def _components(self, path: str) -> tuple[int, list[str]] | None:
        """The root that an absolute path names, and the way from it; None for a relative path."""
        if "\0" in path:
            raise ToolError("invalid_path", "a path can not hold a NUL character")
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError("invalid_path", f"no file can have this name: {error}") from error
        absolute = Path(path)
        if not absolute.is_absolute():
            return None
        found = self._territory.root_of(absolute)
        if found is None:
            raise self._outside()
        return found

    def _top(self) -> _Level:
        root = self._territory.roots[self._number]
        fd = os.open(str(self._territory.names[self._number][0]), _TOP)
        return _Level(fd, "", root)

    def _shown(self, parts: list[str]) -> str:
        below = "/".join(parts)
        if self._number == 0:
            return below or "."
        return str(self._territory.names[self._number][0] / below)

    def _way(self) -> list[str]:
        return [level.name for level in self._levels[1:]]

    def _up(self) -> None:
        if self.missing:  # what does not exist has no parent
            raise self._failure(FileNotFoundError(), self.missing[0])
        if len(self._levels) == 1:
            raise self._outside()
        os.close(self._levels.pop().fd)

    def _link_target(self, part: str) -> str | None:
        try:
            return os.readlink(part, dir_fd=self.directory)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise self._failure(error) from error

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > _LINKS_MOST:
            raise ToolError("too_many_links", f"{self._asked} leads through too many symlinks")
        found = self._components(target)
        if found is None:
            self._todo.extendleft(reversed(PurePosixPath(target).parts))
            return
        self._number, parts = found
        self._todo.extendleft(reversed(parts))
        self.close()
        self._levels.append(self._top())

    def _down(self, part: str) -> None:
        if len(self._levels) > _DEEPEST:
            raise ToolError("too_deep", f"{self._asked} has more than {_DEEPEST} folders")
        try:
            fd = self._open(part)
        except FileNotFoundError as error:
            if self._parents != "may_miss":
                raise self._failure(error, part) from error
            self.missing.append(part)
            return
        except OSError as error:
            raise self._failure(error, part) from error
        root = self._marked.get(identity(os.fstat(fd)), self.root) if self._marked else self.root
        self._levels.append(_Level(fd, part, root or self.root))

    def _open(self, part: str) -> int:
        try:
            return self.open_folder(part)
        except FileNotFoundError:
            if self._parents != "make":
                raise
        if not self.root.writable:
            raise read_only(self._asked, self.root)
        with suppress(FileExistsError):  # somebody else made it meanwhile
            os.mkdir(part, 0o700, dir_fd=self.directory)
            self._made.append(self._shown([*self._way(), part]))
        return self.open_folder(part)

    def _outside(self) -> ToolError:
        return ToolError(
            "outside_workspace",
            f"{self._asked} is outside the workspace",
            next_action_hint=self._hint(),
        )

    def _hint(self) -> str:
        further = ", ".join(str(names[0]) for names in self._territory.names[1:])
        if not further:
            return "Only files in the workspace can be reached; use a relative path."
        return f"Only files in the workspace can be reached (a relative path), and in {further}."

    def _failure(self, error: OSError, part: str | None = None) -> ToolError:
        if isinstance(error, FileNotFoundError) and part is not None:
            folder = "/".join([*self._way(), part])
            return ToolError(
                "not_found",
                f"{self._asked} does not exist: there is no folder {folder}",
                next_action_hint=f"ls {'/'.join(self._way()) or '.'} shows what is there.",
            )
        return os_failure(error, self._asked)


def os_failure(error: OSError, path: str) -> ToolError:
    """An error of the operating system as the model gets to read it."""
    kind = {
        errno.EACCES: "permission_denied",
        errno.EPERM: "permission_denied",
        errno.EROFS: "permission_denied",
        errno.ENOSPC: "disk_full",
        errno.EDQUOT: "disk_full",
        errno.ENOTDIR: "not_a_folder",
        errno.ELOOP: "changed_meanwhile",  # a symlink where there was none a moment ago
        errno.EISDIR: "is_a_folder",
        errno.ENAMETOOLONG: "invalid_path",
        errno.ENOENT: "not_found",
    }.get(error.errno or 0, "os_error")
    return ToolError(kind, f"{path}: {error.strerror}")


def read_only(path: str, root: Root) -> ToolError:
    """The refusal of a write."""
    return ToolError(
        "read_only",
        f"{path} is in {root.path}, which may only be read",
        next_action_hint="Write to the workspace instead: a relative path.",
    )


def is_special(found: os.stat_result) -> bool:
    """Whether it is neither file nor folder: a pipe, a socket, a device."""
    return not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
