"""Documents that strangers made are read by a confined process, with a time limit.

A file can be made so that reading it takes for ever, or all memory; that process sees nothing else.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio.from_thread

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands

TEXT_MOST_CHARS = 10_000_000
_READ_S = 30.0
_MARK = "\x1e"  # what comes before it is none of ours

# What every reader begins with; it ends by calling say.
PREAMBLE = f"""
import io, json, logging, sys
logging.disable()
def say(**facts):
    print({_MARK!r} + json.dumps(facts))
    sys.exit()
def fail(error):
    say(error="broken", why=f"{{type(error).__name__}}: {{error}}"[:300])
sys.path.append(sys.argv[1])
"""


def read_confined(
    script: str, data: bytes, path: str, commands: Commands | None, *, module: str, kind: str
) -> dict[str, Any]:
    """What the script says of `data`, its standard input. Called in a worker thread of the loop.

    `module`: what it imports, of an extra. `kind`: as in "a PDF". Raises ToolError.
    """
    if commands is None:
        raise ToolError("unavailable", f"{path} is {kind}, and nothing can read those here")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ToolError(
            "unavailable",
            f"{path} is {kind}, and the extra that reads them is not installed",
            next_action_hint="The owner of this agentd can install it: pip install 'agentd[docs]'",
        )
    command = _command(PREAMBLE + script, data, Path(spec.origin).parents[1])
    finished = anyio.from_thread.run(commands.run, command)
    if finished.timed_out:
        raise ToolError("timeout", f"{path} could not be read within {_READ_S:.0f} s")
    said = finished.output.rpartition(_MARK)[2]
    try:
        facts: dict[str, Any] = json.loads(said)
    except ValueError:
        ended = finished.exceeded or f"exit code {finished.exit_code}"
        raise ToolError("binary_file", f"{path} can not be read as {kind} ({ended})") from None
    if facts.get("error") == "broken":
        raise ToolError("binary_file", f"{path} can not be read as {kind}: {facts['why']}")
    return facts


def _command(script: str, data: bytes, packages: Path) -> Command:
    return Command(
        argv=[sys.executable, "-I", "-c", script, str(packages)],
        timeout_s=_READ_S,
        stdin=data,
        programs=[*{Path(sys.base_prefix), Path(sys.prefix), packages}],
        read_only=True,
        most_chars=2 * TEXT_MOST_CHARS,
    )
