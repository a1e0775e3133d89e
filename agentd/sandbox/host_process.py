"""Commands outside the sandbox, for what the owner configured: without limits, and with a small
environment, which holds no secret of the daemon.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.sandbox.bubblewrap import View
from agentd.sandbox.finish import Finished, finish
from agentd.sandbox.running import Launch

_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


def small_environment() -> dict[str, str]:
    """Of the daemon's own environment what a program needs to start, and no secret."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


async def run_on_host(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    stdin: bytes = b"",
    timeout_s: float,
    most_chars: int,
) -> Finished:
    """Run it to its end, its standard error among its output. Raises ToolError."""
    view = View(roots=[], environment=environment, workdir=folder)
    launch = Launch(None, argv, view, limits=None, has_input=bool(stdin))
    return await finish(launch, stdin, timeout_s=timeout_s, most_chars=most_chars)
