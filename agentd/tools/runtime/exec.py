"""exec and bash: a command of the model, confined."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field

from agentd.config import Config
from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey, Run
from agentd.processes.registry import Processes
from agentd.sandbox.branches import Branches
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished
from agentd.sandbox.host_commands import HostCommands
from agentd.sandbox.limits import is_disk_limit
from agentd.sandbox.terminal import plain_text
from agentd.toolkit.definition import Alias, Effect, tool

_log = structlog.get_logger()
_MOST_CHARS = 100_000  # seed 002
_DEFAULT_S, _LEAST_S, _MOST_S = 1800, 10, 86_400  # seed 002
_BASH_S = 30  # seed 004


@dataclass(frozen=True, slots=True)
class Executed:
    """`exit_code`: None when it was ended, or goes on in the background under `process_id`.

    `cut_chars`: how much of the output is missing in its middle. `exceeded`: the limit that ended
    it. `outside`: it could speak to strangers, so what it printed may be theirs.
    """

    content: str
    exit_code: int | None = None
    timed_out: bool = False
    exceeded: str | None = None
    cut_chars: int = 0
    duration_s: float = 0.0
    process_id: str | None = None
    outside: bool = False

    @property
    def outside_of(self) -> str | None:
        """Through what strangers may have written the text."""
        return "exec" if self.outside else None


async def start(commands: Commands, branches: Branches, config: Config) -> None:
    """Settle what a daemon that died left behind, and say what can not be enforced here."""
    await branches.settle()
    try:
        features = await commands.features()
    except ToolError as error:  # each call will say it again
        _log.warning("commands can not run", why=error.message)
        return
    if config.sandbox == "off":
        _log.warning("commands run unconfined: sandbox is off")
    elif not features.confines:
        _log.warning(
            "commands are refused: this machine can not confine them",
            lacking=list(features.lacking),
            remedies=list(features.remedies),
        )


def _command(
    commands: Commands,
    command: str,
    workdir: str | None,
    env: dict[str, str] | None,
    input: str | None,  # noqa: A002 - its name in seed 002
    timeout: float,
) -> Command:
    for name in env or {}:
        if not name or "=" in name or "\0" in name:
            raise ToolError("invalid_arguments", f"env: {name!r} is no name of a variable")
    if any("\0" in text for text in (command, workdir or "", *(env or {}).values())):
        raise ToolError("invalid_arguments", "a command can not hold a NUL character")
    shell = "bash" if shutil.which("bash", path="/usr/bin:/bin") else "sh"
    root = commands.roots[0].path
    try:
        stdin = (input or "").encode()
    except UnicodeEncodeError as error:
        raise ToolError("invalid_arguments", f"input can not be sent: {error}") from error
    return Command(
        argv=[shell, "-c", command],
        timeout_s=timeout,
        workdir=_folder(commands, workdir) if workdir else root,
        environment=env or {},
        stdin=stdin,
        most_chars=_MOST_CHARS,
        network=True,
    )


def _folder(commands: Commands, workdir: str) -> Path:
    """Where it starts: inside, also where nothing confines it."""
    roots = [each.path for each in commands.roots]
    asked = Path(os.path.normpath(roots[0] / workdir))
    if not any(asked.is_relative_to(root) for root in roots):
        raise ToolError(
            "outside_workspace",
            f"{workdir} is outside the workspace",
            next_action_hint="workdir is a folder of the workspace, relative to it.",
        )
    return asked


async def reconcile(  # noqa: PLR0913 - what exec takes
    commands: Commands,
    branches: Branches,
    key: CallKey,
    run: Run | None,
    processes: Processes,
    hosts: HostCommands,
    command: str,
    workdir: str | None = None,
    env: dict[str, str] | None = None,
    input: str | None = None,  # noqa: A002 - its name in seed 002
    background: bool = False,
    timeout: float = _DEFAULT_S,  # noqa: ASYNC109 - same
) -> Executed | None:
    """The outcome of a call that a crash cut off; None: nothing of it happened."""
    del run, processes, hosts, background
    asked = _command(commands, command, workdir, env, input, timeout)
    found = await branches.reconcile(key, asked)
    outside = commands.settings.grant is not None
    return None if found is None else _executed(found, timeout, outside=outside)


@tool(
    group="runtime",
    effect=Effect.RECONCILABLE,
    start=start,
    reconcile=reconcile,
    aliases=[
        Alias(
            "bash",
            defaults={
                "workdir": None,
                "env": None,
                "input": None,
                "background": False,
                "timeout": _BASH_S,
            },
            hidden=("workdir", "env", "input", "background", "timeout"),
            description="Run a shell command in the workspace, for 30 seconds at the most. exec is "
            "the same with more time and options.",
        )
    ],
)
async def exec(  # noqa: PLR0913, A001 - six capabilities, six inputs; its name in seed 002
    commands: Commands,
    branches: Branches,
    key: CallKey,
    run: Run | None,
    processes: Processes,
    hosts: HostCommands,
    command: Annotated[str, Field(min_length=1, description="The command, for a shell.")],
    workdir: Annotated[
        str | None, Field(description="The folder to start in, from the workspace.")
    ] = None,
    env: Annotated[
        dict[str, str] | None, Field(description="Variables that it gets, besides the usual ones.")
    ] = None,
    input: Annotated[  # noqa: A002 - its name in seed 002
        str | None, Field(description="What it reads from its standard input.")
    ] = None,
    background: Annotated[
        bool, Field(description="Return at once; `process` then shows what becomes of it.")
    ] = False,
    timeout: Annotated[  # noqa: ASYNC109 - its name in seed 002
        float, Field(ge=_LEAST_S, le=_MOST_S, description="Seconds after which it is ended.")
    ] = _DEFAULT_S,
) -> Executed:
    """Run a shell command in the workspace and return what it printed.

    It sees a read-only system and the workspace, and has no network unless that was granted. /tmp
    is its own: what one command leaves there is gone for the next. Everything that it started ends
    with it, unless `background` is set. Its changes of files count all together when it has ended.
    """
    asked = _command(commands, command, workdir, env, input, timeout)
    on_host = hosts.find(command) if workdir is None and not env and not background else None
    if on_host is not None:
        await branches.note_direct(key)
        finished = await hosts.run(
            on_host, stdin=asked.stdin, timeout_s=timeout, most_chars=_MOST_CHARS
        )
        return _executed(finished, timeout, outside=True)
    if not background:
        outside = commands.settings.grant is not None
        return _executed(await branches.run(key, asked), timeout, outside=outside)
    if run is None:
        raise ToolError(
            "unavailable",
            "a background process belongs to a daemon, and there is none in this place",
            next_action_hint="Run it without background.",
        )
    await branches.note_direct(key)
    started = await processes.start(run, asked, command)
    call = f'process(action="poll", process_id="{started}")'
    return Executed(f"It runs in the background. {call} shows its output.", process_id=started)


def _executed(finished: Finished, timeout_s: float, *, outside: bool) -> Executed:
    output = plain_text(finished.output).rstrip("\n")
    lines = [output] if output else []
    if finished.timed_out:
        lines.append(f"[timed out after {timeout_s:g}s]")
    elif finished.exceeded is not None:
        lines.append(f"[ended: {finished.exceeded}]")
        if is_disk_limit(finished.exceeded):
            lines.append("[what it had written was dropped, if it worked on a branch]")
    elif finished.exit_code:
        lines.append(f"[exit code {finished.exit_code}]")
    return Executed(
        "\n".join(lines) or "(no output)",
        exit_code=finished.exit_code,
        timed_out=finished.timed_out,
        exceeded=finished.exceeded,
        cut_chars=finished.cut_chars,
        duration_s=round(finished.duration_s, 3),
        outside=outside,
    )
