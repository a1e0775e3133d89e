"""The gate of a schedule: a command of its owner that says whether a run is worth its money."""

from dataclasses import dataclass
from pathlib import Path

from agentd.domain.errors import ToolError
from agentd.sandbox.host_process import run_on_host, small_environment

_TAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Gate:
    """Runs gates in `directory`, each for `timeout_s` at most. Keys of agentd are not passed on."""

    directory: Path
    timeout_s: float

    async def ask(self, command: str) -> str | None:
        """None when it exits with 0; else why no run is to be made."""
        try:
            done = await run_on_host(
                ["/bin/sh", "-c", command],
                environment=small_environment(),
                folder=self.directory,
                timeout_s=self.timeout_s,
                most_chars=2 * _TAIL_CHARS,
            )
        except ToolError as error:
            return f"its gate could not be run: {error.message}"
        if done.timed_out:
            return f"its gate took longer than {self.timeout_s:g} s (schedules.gate_seconds)"
        said = " ".join(done.output[-_TAIL_CHARS:].split())
        return (
            f"its gate exited with {done.exit_code}: {said}".rstrip(": ")
            if done.exit_code
            else None
        )
