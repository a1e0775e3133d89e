"""Network for one confined command: a proxy that heeds the policy, and the way to it.

The command stays in a network of its own with nothing in it. What it gets is one Unix socket, and
in front of it a small program that makes a port of it (bridge.py).
"""

import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentd.sandbox import bridge
from agentd.sandbox.egress import Egress

if TYPE_CHECKING:
    from agentd.sandbox.proxy import Limits

_PORT = 3128
_SOCKET = Path("/run/agentd/egress.sock")
_BRIDGE = Path("/run/agentd/bridge.py")
_PATH_MOST = 80  # bytes of a folder, so that a socket in it fits into the kernel's 107
_SYSTEM = Path("/usr")


@dataclass(frozen=True, slots=True)
class Granted:
    """What a command with network needs: more to see, variables, and words in front of its own.

    `binds`: what it is to see, read-only, each with where. `prefix` stands before its argv.
    """

    binds: Sequence[tuple[Path, Path]]
    environment: Mapping[str, str]
    prefix: Sequence[str]


@asynccontextmanager
async def granted_network(
    egress: Egress, directory: Path, limits: "Limits | None" = None
) -> AsyncGenerator[Granted]:
    """Network while the block runs. `directory`: where the socket's own folder is made."""
    from agentd.sandbox.proxy import proxy  # noqa: PLC0415 - 60 ms that few commands need

    short = directory if len(bytes(directory)) <= _PATH_MOST else None
    own = Path(tempfile.mkdtemp(prefix="net-", dir=short))  # 0700
    try:
        path = own / "egress.sock"
        async with proxy(path, egress, limits):
            yield _granted(path)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _granted(path: Path) -> Granted:
    python = Path(sys.executable).resolve()
    binds = [(path, _SOCKET), (Path(bridge.__file__), _BRIDGE)]
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to(_SYSTEM):
        binds.append((prefix, prefix))
    proxied = f"http://127.0.0.1:{_PORT}"
    environment = {
        name: proxied
        for kind in ("http_proxy", "https_proxy", "all_proxy")
        for name in (kind, kind.upper())
    }
    direct = "localhost,127.0.0.1,::1"  # what the command itself serves
    environment |= {"no_proxy": direct, "NO_PROXY": direct}
    first = [str(python), "-I", "-S", str(_BRIDGE), str(_SOCKET), str(_PORT)]
    return Granted(binds, environment, first)
