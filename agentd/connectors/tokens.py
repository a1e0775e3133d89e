"""OAuth tokens of HTTP servers: one file for each in the home, readable by nobody else."""

from pathlib import Path
from typing import TYPE_CHECKING

from agentd.connectors.specs import ServerSpec

if TYPE_CHECKING:
    import httpx2


def auth_of(spec: ServerSpec, folder: Path) -> "httpx2.Auth | None":
    """How requests to a server are authorised without a person; None: nobody ever logged in."""
    del spec, folder
    return None
