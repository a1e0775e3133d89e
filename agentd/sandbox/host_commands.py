"""Commands that leave the sandbox: those of the configuration, word for word, and no other.

No shell of ours ever reads them. Over SSH the server hands one line to the user's shell there, so
that each word is quoted for it.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.domain.capability import Capability
from agentd.sandbox.finish import Finished
from agentd.sandbox.host_process import run_on_host, small_environment
from agentd.sandbox.ssh import SshAccess, ssh_arguments


@dataclass(frozen=True, slots=True)
class SshPlace:
    """A host where commands run."""

    host: str
    port: int
    user: str
    access: SshAccess


@dataclass(frozen=True, slots=True)
class HostCommand:
    """`argv`: what the agent says. `run`: what is started. `ssh`: None is this machine."""

    argv: tuple[str, ...]
    run: tuple[str, ...]
    timeout_s: float
    ssh: SshPlace | None = None


class HostCommands(Capability):
    """`folder`: where local ones start."""

    def __init__(self, commands: Sequence[HostCommand], folder: Path) -> None:
        self._commands = {each.argv: each for each in commands}
        self._folder = folder

    def find(self, command: str) -> HostCommand | None:
        """The one that `command` is, word for word; a longer or shorter line is none."""
        line = command.strip()
        if "\n" in line or "\r" in line:  # to a shell that would be two commands
            return None
        try:
            return self._commands.get(tuple(shlex.split(line)))
        except ValueError:
            return None

    async def run(
        self, command: HostCommand, *, stdin: bytes = b"", timeout_s: float, most_chars: int
    ) -> Finished:
        """Run it to its end, at most for the shorter of the two times. Raises ToolError."""
        return await run_on_host(
            _argv(command),
            environment=small_environment(),
            folder=self._folder,
            stdin=stdin,
            timeout_s=min(timeout_s, command.timeout_s),
            most_chars=most_chars,
        )


def _argv(command: HostCommand) -> list[str]:
    place = command.ssh
    if place is None:
        return list(command.run)
    words = ssh_arguments(place.access, host=place.host, port=place.port, address=None)
    login = ["-p", str(place.port), "-l", place.user]
    return [*words, *login, "--", place.host, shlex.join(command.run)]
