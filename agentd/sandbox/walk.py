"""Follows a path below a folder, one component at a time, through directory descriptors.

Each component is opened with O_NOFOLLOW from the descriptor of the one before, and symlinks are
resolved here, so that nothing outside the root is ever opened, even when another process changes
the tree meanwhile (no gap between a check and its use). `openat2(RESOLVE_BENEATH)` would do the
same in one system call; Python does not offer it.
"""

import errno
import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import PurePosixPath
from types import TracebackType
from typing import Self

from agentd.domain.errors import ToolError

_LINKS_MOST = 40  # as Linux itself: path_resolution(7)
_DEEPEST = 100  # folders in a path: each takes a descriptor
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """Where a path leads: the open folder that holds it, and its name there.

    The name is no symlink and may not exist; it is "." when the path means the open folder itself.
    `root`: a resolved path; `also`: another name of the root, which absolute paths may use. A
    context manager; it owns the descriptors. Raises ToolError.
    """

    def __init__(self, root: str, path: str, *, also: str, make_parents: bool = False) -> None:
        self._roots = (PurePosixPath(root), PurePosixPath(also))
        self._asked = path
        self._make_parents = make_parents
        self._todo = deque(self._components(path))
        self._names: list[str] = []
        self._links = 0
        self._fds = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self.name = "."
        try:
            self._walk()
        except BaseException:
            self.close()
            raise

    @property
    def directory(self) -> int:
        """The descriptor of the folder that holds the name."""
        return self._fds[-1]

    @property
    def shown(self) -> str:
        """The path from the root, as people write it."""
        return "/".join([*self._names, *([] if self.name == "." else [self.name])]) or "."

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
        while self._fds:
            os.close(self._fds.pop())

    def stat(self) -> os.stat_result | None:
        """What stands there, or None."""
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _walk(self) -> None:
        while self._todo:
            part = self._todo.popleft()
            if part == "..":
                self._up()
            elif (target := self._link_target(part)) is not None:
                self._follow(target)
            elif self._todo:
                self._down(part)
            else:
                self.name = part

    def _components(self, path: str) -> list[str]:
        if "\0" in path:
            raise ToolError("invalid_path", "a path can not hold a NUL character")
        parts = PurePosixPath(path)
        if not parts.is_absolute():
            return list(parts.parts)
        for root in self._roots:
            if parts.is_relative_to(root):
                return list(parts.relative_to(root).parts)
        raise self._outside()

    def _up(self) -> None:
        if len(self._fds) == 1:
            raise self._outside()
        os.close(self._fds.pop())
        self._names.pop()

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
        self._todo.extendleft(reversed(self._components(target)))
        if target.startswith("/"):
            while len(self._fds) > 1:
                self._up()

    def _down(self, part: str) -> None:
        if len(self._fds) > _DEEPEST:
            raise ToolError("too_deep", f"{self._asked} has more than {_DEEPEST} folders")
        try:
            try:
                fd = os.open(part, _DIRECTORY, dir_fd=self.directory)
            except FileNotFoundError:
                if not self._make_parents:
                    raise
                with suppress(FileExistsError):  # somebody else made it meanwhile
                    os.mkdir(part, 0o700, dir_fd=self.directory)
                fd = os.open(part, _DIRECTORY, dir_fd=self.directory)
        except OSError as error:
            raise self._failure(error, part) from error
        self._fds.append(fd)
        self._names.append(part)

    def _outside(self) -> ToolError:
        return ToolError(
            "outside_workspace",
            f"{self._asked} is outside the workspace",
            next_action_hint="Only files in the workspace can be reached; use a relative path.",
        )

    def _failure(self, error: OSError, part: str | None = None) -> ToolError:
        if isinstance(error, FileNotFoundError) and part is not None:
            folder = "/".join([*self._names, part])
            return ToolError(
                "not_found",
                f"{self._asked} does not exist: there is no folder {folder}",
                next_action_hint=f"ls {'/'.join(self._names) or '.'} shows what is there.",
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


def is_special(found: os.stat_result) -> bool:
    """Whether it is neither file nor folder: a pipe, a socket, a device."""
    return not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
