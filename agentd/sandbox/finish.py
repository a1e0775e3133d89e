"""A command from its start to its end, as whoever waits for it sees it."""

from contextlib import suppress
from dataclasses import dataclass

import anyio

from agentd.domain.errors import ToolError
from agentd.sandbox.capture import Capture
from agentd.sandbox.running import Launch, attend, running


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `exit_code`: None when it was ended by its time or a limit.

    `output`: standard output and error as they came, the middle cut out where it was too long;
    `cut_chars`: how much is missing. `exceeded`: the limit that ended it, in words.
    """

    exit_code: int | None
    output: str
    cut_chars: int
    timed_out: bool
    duration_s: float
    exceeded: str | None = None


async def finish(launch: Launch, stdin: bytes, *, timeout_s: float, most_chars: int) -> Finished:
    """Run it. When its time is over or we are cancelled it is asked to end, and killed after 5 s.

    Raises ToolError when it could not be started, or not be confined.
    """
    started = anyio.current_time()
    capture = Capture(most_chars)
    code: int | None = None
    async with running(launch) as child:
        with anyio.move_on_after(timeout_s):
            code = await attend(child, stdin, capture.feed)
        failure = child.failure()
    capture.feed(b"", final=True)
    output, took_s = capture.text(), anyio.current_time() - started
    if failure is not None:
        raise _not_run(output or failure)
    code, timed_out = (None, False) if child.exceeded else (code, code is None)
    return Finished(code, output, capture.cut_chars, timed_out, took_s, child.exceeded)


def _not_run(said: str) -> ToolError:
    """What bwrap said instead of running the command."""
    with suppress(ValueError):
        folder = said[said.index("Can't chdir to ") :].removeprefix("Can't chdir to ")
        return ToolError("not_found", f"there is no folder {folder.partition(':')[0]}")
    return ToolError("sandbox_failed", f"the command could not be confined: {said.strip()}")
