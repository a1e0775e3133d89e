"""A real sshd for one test: its own keys and configuration, on a free port of 127.0.0.1.

The test listens, and starts `sshd -i` for each connection: nobody has to guess a port.
"""

import getpass
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True)
class Sshd:
    """`log_path`: what the servers wrote. `known_hosts` names the host; `stranger` is a key that
    the server does not accept.
    """

    port: int
    user: str
    key: Path
    stranger: Path
    known_hosts: Path
    log_path: Path

    def address(self, path: Path) -> str:
        return f"ssh://{self.user}@127.0.0.1:{self.port}{path}"


@contextmanager
def running_sshd(folder: Path) -> Iterator[Sshd]:
    """Skips the test where there is no OpenSSH."""
    if _SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh, ssh-keygen and sshd (openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # it does not start without it as root
    folder.mkdir(mode=0o700)
    for name in ("host", "key", "stranger"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(make, check=True)
    (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    log = folder / "log"
    (folder / "config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nLogLevel VERBOSE\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        host_key = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
        command = [_SSHD, "-i", "-f", str(folder / "config"), "-E", str(log)]
        thread = threading.Thread(target=_serve, args=(listener, command), daemon=True)
        thread.start()
        names = ("key", "stranger", "known_hosts", "log")
        made = Sshd(port, getpass.getuser(), *(folder / name for name in names))
        try:
            _require_login(made)
            yield made
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _require_login(made: Sshd) -> None:
    """Accounts without a shell or with a lock can not log in, and so can not be tested with."""
    options = ["-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={made.known_hosts}"]
    command = ["ssh", *options, "-i", made.key, "-p", str(made.port), "127.0.0.1", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=15)
    if done.returncode != 0:
        pytest.skip(f"sshd does not let {made.user} log in: {done.stderr.strip()[-200:]}")


def _serve(listener: socket.socket, command: list[str]) -> None:
    servers: list[subprocess.Popen[bytes]] = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        with connection:
            servers.append(subprocess.Popen(command, stdin=connection, stdout=connection))
    for server in servers:
        server.terminate()
        server.wait(5)
