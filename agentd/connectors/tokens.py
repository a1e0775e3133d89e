"""OAuth tokens of HTTP servers: one file for each in the home, readable by nobody else."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.connectors.specs import ServerSpec
from agentd.domain.jsons import is_object
from agentd.private_files import put

if TYPE_CHECKING:
    import httpx2


_LONG_AGO = 1.0  # the package takes 0 for "never"


def path_of(name: str, folder: Path) -> Path:
    """Where the tokens of server `name` stand."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:40]}-{digest}.json"


def read(name: str, folder: Path) -> dict[str, Any]:
    """What is kept of a login; nothing where there was none."""
    try:
        found = json.loads(path_of(name, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if is_object(found) else {}


def write(name: str, folder: Path, kept: Mapping[str, Any]) -> None:
    """At once or not at all, 0600 from its first byte."""
    folder.mkdir(mode=0o700, exist_ok=True)
    put(path_of(name, folder), json.dumps(kept).encode())


def expire(name: str, folder: Path) -> bool:
    """Let the next request ask for a new token; False: that has been tried, or can not be."""
    kept = read(name, folder)
    if not kept.get("tokens", {}).get("refresh_token") or kept.get("expires_at") == _LONG_AGO:
        return False
    write(name, folder, {**kept, "expires_at": _LONG_AGO})
    return True


def forget(name: str, folder: Path) -> bool:
    """Whether there was something to forget."""
    path = path_of(name, folder)
    was_there = path.exists()
    path.unlink(missing_ok=True)
    return was_there


def auth_of(spec: ServerSpec, folder: Path) -> "httpx2.Auth | None":
    """How requests to a server are authorised without a person; None: nobody ever logged in."""
    if spec.transport == "stdio" or not path_of(spec.name, folder).exists():
        return None
    from agentd.connectors.login import unattended  # noqa: PLC0415 - loads the package `mcp`

    return unattended(spec, folder)
