"""Brings what a command has written on its branch into the files themselves.

A branch is the upper folder of an overlay (kernel: Documentation/filesystems/overlayfs.rst): what
is new or changed lies in it whole, what was deleted as a device 0:0, a folder that replaced another
one is marked opaque. Each step takes something out of the upper folder, so a merge that was cut off
is finished by doing it again. All goes by descriptors of folders; no symlink is ever followed.
"""

import errno
import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentd.domain.ids import new_id

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COPYING = ".agentd-merging"
_MARKS = "user.overlay."
_DEEPEST = 200  # folders; each takes two descriptors
_PIECE_BYTES = 1 << 20


def merge(upper: Path, root: Path, trash: Path) -> None:
    """`trash`: an existing folder on the disk of `upper`; what is replaced goes there.

    Raises OSError; done again later, it goes on where it stopped.
    """
    upper_fd = os.open(upper, _FOLDER)
    try:
        root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _Merge(trash).folder(upper_fd, root_fd, 0)
        finally:
            os.close(root_fd)
    finally:
        os.close(upper_fd)


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, however deep and whatever its modes; nobody else writes there.

    What is deep is brought up: neither recursion nor descriptors grow with it.
    """
    left = True
    while left:
        left = False
        for path in _without_files(folder):
            left = True
            for inner in _without_files(path):
                inner.chmod(0o700)  # else it can not change its parent
                inner.rename(folder / new_id())
            path.rmdir()
    folder.rmdir()


def _without_files(folder: Path) -> list[Path]:
    """The folders in it; all else in it is removed."""
    folder.chmod(0o700)
    folders: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                Path(entry.path).unlink()
    return folders


class _Merge:
    def __init__(self, trash: Path) -> None:
        self._trash = trash

    def folder(self, upper: int, root: int, depth: int) -> None:
        """The content of one folder, by descriptors."""
        if depth > _DEEPEST:
            raise OSError(errno.ELOOP, f"the changes are more than {_DEEPEST} folders deep")
        for name in os.listdir(upper):
            found = os.stat(name, dir_fd=upper, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                self._folder(upper, root, name, depth)
            elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                if _is_folder(root, name):
                    self._discard(root, name)
                _unmark(upper, name)
                if not _moved(upper, root, name):
                    _copy(upper, root, name)
            else:
                if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                    self._discard(root, name)
                os.unlink(name, dir_fd=upper)  # that, or a pipe or a socket that nobody serves

    def _folder(self, upper: int, root: int, name: str, depth: int) -> None:
        if _is_opaque(upper, name) or not _is_folder(root, name):
            self._discard(root, name)
            _clean(upper, name)
            if _moved(upper, root, name):
                return
            os.mkdir(name, 0o700, dir_fd=root)  # on another disk: one by one
        found = os.stat(name, dir_fd=upper, follow_symlinks=False)
        if found.st_mode & 0o700 != 0o700:
            os.chmod(name, 0o700, dir_fd=upper)
        upper_fd = os.open(name, _FOLDER, dir_fd=upper)
        try:
            root_fd = _open_folder(root, name)
            try:
                self.folder(upper_fd, root_fd, depth + 1)
                os.fchmod(root_fd, stat.S_IMODE(found.st_mode))
                os.utime(root_fd, ns=(found.st_atime_ns, found.st_mtime_ns))
            finally:
                os.close(root_fd)
        finally:
            os.close(upper_fd)
        os.rmdir(name, dir_fd=upper)

    def _discard(self, root: int, name: str) -> None:
        """Take away what stands in the root, a whole folder at once."""
        if not _is_folder(root, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=root)
            return
        if not _moved(root, None, name, self._trash / new_id()):
            shutil.rmtree(name, dir_fd=root)


def _moved(source: int, target: int | None, name: str, to: Path | None = None) -> bool:
    """Rename it, into the folder `target` or to the path `to`. False: that is another disk."""
    new = name if to is None else to
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        # A folder that may not be written can not change its parent, but for root.
        with _pinned(source, name) as folder:
            mode = stat.S_IMODE(folder.stat().st_mode)
            folder.chmod(mode | 0o700)
            os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
            folder.chmod(mode)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _copy(upper: int, root: int, name: str) -> None:
    """A file or symlink, onto another disk: under another name first, so that it is there whole."""
    with suppress(FileNotFoundError):
        os.unlink(_COPYING, dir_fd=root)
    found = os.stat(name, dir_fd=upper, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=upper), _COPYING, dir_fd=root)
    else:
        with (
            os.fdopen(os.open(name, _READ, dir_fd=upper), "rb") as source,
            os.fdopen(os.open(_COPYING, _NEW, 0o600, dir_fd=root), "wb") as target,
        ):
            shutil.copyfileobj(source, target, _PIECE_BYTES)
            target.flush()
            os.fchmod(target.fileno(), stat.S_IMODE(found.st_mode))
            os.utime(target.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
    os.rename(_COPYING, name, src_dir_fd=root, dst_dir_fd=root)
    os.unlink(name, dir_fd=upper)


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _open_folder(folder: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        with _pinned(folder, name) as pinned:
            pinned.chmod(0o700)
        return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _pinned(folder: int, name: str) -> Generator[Path]:
    """A path to that very folder, whatever takes its name meanwhile, even if it may not be read."""
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _is_opaque(folder: int, name: str) -> bool:
    try:
        mark = os.getxattr(
            f"/proc/self/fd/{folder}/{name}", f"{_MARKS}opaque", follow_symlinks=False
        )
    except OSError:
        return False
    return mark == b"y"


def _unmark(folder: int, name: str) -> None:
    """Take away what the overlay has noted at a file or folder."""
    path = f"/proc/self/fd/{folder}/{name}"
    with suppress(OSError):  # symlinks have none, and some disks have none at all
        for mark in os.listxattr(path, follow_symlinks=False):
            if mark.startswith(_MARKS):
                os.removexattr(path, mark, follow_symlinks=False)


def _clean(folder: int, name: str, depth: int = 0) -> None:
    """Make a new folder of the branch an ordinary one: no marks, no pipes, sockets or devices."""
    _unmark(folder, name)
    if depth > _DEEPEST:
        return
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    if mode & 0o700 != 0o700:
        os.chmod(name, mode | 0o700, dir_fd=folder)
    fd = os.open(name, _FOLDER, dir_fd=folder)
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _clean(fd, entry.name, depth + 1)
                elif entry.is_file(follow_symlinks=False):
                    _unmark(fd, entry.name)
                elif not entry.is_symlink():
                    os.unlink(entry.name, dir_fd=fd)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
