"""The command line of `bwrap`: what a confined command sees of the machine.

Everything is unshared: users, processes, network, IPC, host name, control groups and mounts. A
command sees a read-only system, the workspace, and a /tmp of its own; nothing else exists for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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


def bwrap_arguments(
    bwrap: Path,
    *,
    roots: Sequence[Root],
    programs: Iterable[Path],
    environment: Mapping[str, str],
    workdir: Path,
) -> list[str]:
    """All of it in front of the command itself. `programs`: further files that it may run."""
    arguments = [str(bwrap), "--unshare-all", "--unshare-user", "--disable-userns"]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--hostname", "sandbox", "--clearenv"]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    arguments += [*_system(), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for root in roots:
        arguments += ["--bind" if root.writable else "--ro-bind", str(root.path), str(root.path)]
    for program in programs:
        arguments += ["--ro-bind", str(program), str(program)]
    return [*arguments, "--chdir", str(workdir), "--"]


def _system() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKED:
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        path = Path("/etc", name)
        arguments += ["--ro-bind-try", str(path), str(path)]
    return arguments
