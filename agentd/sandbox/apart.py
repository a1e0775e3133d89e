"""Parsers of strangers' files run in a process of their own.

A library in Rust or C that is given a hostile page can hold the interpreter's lock for seconds, eat
the memory or abort: the daemon with all its tasks must not be in that process.
"""

import os
import subprocess
import sys
from pathlib import Path

import anyio


async def parse_apart(
    script: Path, data: bytes, *arguments: str, timeout_s: float, most_bytes: int
) -> bytes | None:
    """What the script makes of `data`, cut at `most_bytes`; None when it fails or takes too long.

    `script`: a file that reads standard input and sets limits for itself.
    """
    line = [sys.executable, "-P", "-s", str(script), *arguments]
    # The same libraries, wherever they are installed, and nothing else of this environment.
    path = os.pathsep.join(each for each in sys.path if os.path.isabs(each))  # noqa: PTH117 - text
    with anyio.move_on_after(timeout_s):
        try:
            done = await anyio.run_process(
                line,
                input=data,
                stderr=subprocess.DEVNULL,
                check=False,
                env={"PYTHONPATH": path},
                cwd="/",
                start_new_session=True,
            )
        except ExceptionGroup:  # it has ended before it had read everything
            return None
        return done.stdout[:most_bytes] if done.returncode == 0 else None
    return None
