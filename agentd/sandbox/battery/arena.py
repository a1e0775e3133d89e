"""What the attacks go for, made for the time of one proof: nothing of it stays.

Each thing holds or guards the secret; it is in no argument of an attack, so that an output with the
secret in it is an escape, whatever the attack itself says.
"""

import contextlib
import ctypes
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SHM = Path("/dev/shm")  # noqa: S108 - what everybody shares is what is tried
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Arena:
    """`folder`: in the home, out of reach. `here`: in the workspace, where the attacks run.

    `sockets`: by name, non-blocking. `victim`: a process of ours.
    """

    token: str
    secret: str
    folder: Path
    here: Path
    sockets: dict[str, socket.socket]
    victim: "subprocess.Popen[bytes]"
    targets: dict[str, Any]
    notices: list[str] = field(default_factory=list[str])

    def noticed(self) -> list[str]:
        """What has come through since the last time; left processes are ended."""
        found = [f"something came in: {name}" for name in self.sockets if self._hears(name)]
        if (self.folder / "written").exists():
            (self.folder / "written").unlink()
            found.append("a file was written outside")
        if self.victim.poll() is not None and not self.notices:
            self.notices.append("the victim")
            found.append("the victim is dead")
        return found

    def left_processes(self) -> list[int]:
        """Attacks, and what they started: all of them carry the token in their command line."""
        mark, ours = self.token.encode(), self.victim.pid
        return [pid for pid, words in _command_lines() if mark in words and pid != ours]

    def _hears(self, name: str) -> bool:
        listener = self.sockets[name]
        with contextlib.suppress(BlockingIOError):
            if listener.type == socket.SOCK_DGRAM:
                return bool(listener.recv(16))
            listener.accept()[0].close()
            return True
        return False


@contextlib.contextmanager
def made_arena(home: Path, workspace: Path, bounds: dict[str, int]) -> Generator[Arena]:
    """`bounds`: how far the attacks on resources go. Raises OSError."""
    token, secret = f"agentd-prove-{secrets.token_hex(8)}", secrets.token_hex(16)
    with contextlib.ExitStack() as stack:
        (home / "run").mkdir(exist_ok=True, mode=0o700)
        folder, here = home / "run" / token, workspace / f".{token}"
        for made in (folder, here):
            made.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, made, ignore_errors=True)
        files = _files(stack, folder, token, secret)
        sockets = _sockets(stack, folder, token)
        victim = _victim(stack, token)
        variable = f"AGENTD_PROVE_{token[-8:].upper()}"
        os.environ[variable] = secret
        stack.callback(os.environ.pop, variable, None)
        _key(stack, token, secret)
        targets = {
            "token": token,
            "folder": str(folder),
            "written": str(folder / "written"),
            **files,
            "home_files": [str(home / name) for name in ("agentd.toml", "agentd.duckdb")],
            "tcp_port": sockets["TCP"].getsockname()[1],
            "udp_port": sockets["UDP"].getsockname()[1],
            "abstract": token,
            "victim": victim.pid,
            "victim_name": f"{token}-victim",
            "left_name": f"{token}-left",
            "variable": variable,
            "key_name": token,
            "shm_key": _segment(stack, token),
            "host_name": platform.node(),
            **bounds,
        }
        yield Arena(token, secret, folder, here, sockets, victim, targets)


def _files(stack: contextlib.ExitStack, folder: Path, token: str, secret: str) -> dict[str, str]:
    """Files with the secret; one of them open, for whoever inherits descriptors."""
    paths = {"secret_file": folder / "secret"}
    with contextlib.suppress(RuntimeError):  # a user without a home
        paths["user_file"] = Path.home() / f".{token}"
    if _SHM.is_dir():
        paths["shm_file"] = _SHM / token
    for path in paths.values():
        with contextlib.suppress(OSError):  # not writable: what is not there is not tried
            path.write_text(secret)
            stack.callback(path.unlink, missing_ok=True)
    fd = os.open(paths["secret_file"], os.O_RDONLY)
    os.set_inheritable(fd, True)
    stack.callback(os.close, fd)
    return {name: str(path) for name, path in paths.items() if path.exists()}


def _sockets(stack: contextlib.ExitStack, folder: Path, token: str) -> dict[str, socket.socket]:
    """Where attacks knock."""
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    wanted: dict[str, tuple[int, int, Any]] = {
        "TCP": (socket.AF_INET, stream, (_LOOPBACK, 0)),
        "UDP": (socket.AF_INET, datagram, (_LOOPBACK, 0)),
        "abstract socket": (socket.AF_UNIX, stream, f"\0{token}"),
        "socket in the home": (socket.AF_UNIX, stream, None),
    }
    made: dict[str, socket.socket] = {}
    for name, (family, kind, address) in wanted.items():
        listener = stack.enter_context(socket.socket(family, kind))
        if address is None:
            _bind_path(listener, folder)
        else:
            listener.bind(address)
        if kind == stream:
            listener.listen()
        listener.setblocking(False)
        made[name] = listener
    return made


def _bind_path(listener: socket.socket, folder: Path) -> None:
    """The path of a socket holds 107 bytes; a home may lie deeper."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{fd}/socket")
    finally:
        os.close(fd)


def _victim(stack: contextlib.ExitStack, token: str) -> "subprocess.Popen[bytes]":
    """Waits until we are gone."""
    line = "import sys; sys.stdin.read()"
    victim = subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-ISc", line, f"{token}-victim"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(victim.wait)
    stack.callback(victim.kill)
    assert victim.stdin is not None
    stack.callback(victim.stdin.close)
    return victim


def _key(stack: contextlib.ExitStack, token: str, secret: str) -> None:
    """Into the keyring of this session, which a started process inherits. May not be allowed."""
    add, control = (217, 219) if platform.machine() == "aarch64" else (248, 250)
    libc = ctypes.CDLL(None)
    value = secret.encode()
    key = libc.syscall(add, b"user", token.encode(), value, len(value), -3)
    if key >= 0:
        stack.callback(libc.syscall, control, 9, key, -3)  # KEYCTL_UNLINK


def _segment(stack: contextlib.ExitStack, token: str) -> int:
    """System V shared memory; the key that it was made with."""
    libc, key = ctypes.CDLL(None), int(token[-7:], 16)
    segment = libc.shmget(key, 4096, 0o1600)  # IPC_CREAT, for us alone
    if segment >= 0:
        stack.callback(libc.shmctl, segment, 0, None)  # IPC_RMID
    return key


def _command_lines() -> Generator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes()
