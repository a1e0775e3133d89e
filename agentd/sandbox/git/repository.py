"""Git on the workspace's repository: always inside the sandbox.

Whatever the repository's own configuration makes git start has no more rights than `exec` gives.
What can be switched off is switched off besides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished
from agentd.sandbox.roots import Root

_MOST_CHARS = 20_000
_SETTINGS = {
    "core.alternateRefsCommand": "true",
    "core.attributesFile": "/dev/null",
    "core.editor": "true",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "commit.gpgSign": "false",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "gpg.program": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "merge.verifySignatures": "false",
    "protocol.allow": "never",
    "protocol.file.allow": "always",  # the mirror, which is bound into the sandbox
    "safe.bareRepository": "explicit",
    "safe.directory": "*",
    "submodule.recurse": "false",
}
_ENVIRONMENT = {
    "GIT_ASKPASS": "true",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NO_FOLDER, _NO_GIT = 125, 127
_GIT = 'cd -- "$1" || exit 125; shift; exec git "$@"'
_QUIET = 'cd -- "$1" || exit 125; shift; exec git "$@" 2>/dev/null'
# One line for each fact; a fact that is missing is an empty line.
_FACTS = """
cd -- "$1" 2>/dev/null || exit 125
command -v git >/dev/null || exit 127
top=$(git rev-parse --is-inside-work-tree 2>&1) || { printf '%s\\n' "$top"; exit 124; }
branch=$(git symbolic-ref --quiet --short HEAD)
remote=$(git config --get "branch.$branch.remote" || echo origin)
fetch=$(git config --get "remote.$remote.url")
push=$(git config --get "remote.$remote.pushurl" || printf '%s' "$fetch")
printf '%s\\n' "$branch" "$(git rev-parse --quiet --verify 'HEAD^{commit}')" "$remote" \\
    "$fetch" "$push" "$(git config --get "branch.$branch.merge")"
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the repository says of itself; all of it may be a lie. Empty: there is none.

    `commit`: where the branch stands. `upstream`: refs/heads/NAME on the remote.
    """

    branch: str
    commit: str
    remote: str
    fetch_url: str
    push_url: str
    upstream: str


@dataclass(frozen=True, slots=True)
class Repository:
    """`folder`: from the workspace. `timeout_s`: of each command. `also`: further folders."""

    commands: Commands
    workspace: Path
    folder: str
    timeout_s: float
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    also: Sequence[Root] = ()

    async def facts(self) -> Facts:
        """Raises ToolError where there is no repository."""
        done = await self._run(["sh", "-c", f"exec 2>/dev/null\n{_FACTS}", "sh", self._place])
        if done.exit_code != 0:
            raise self._no_repository(done.output)
        lines = done.output.split("\n")
        return Facts(*(lines[at] if at < len(lines) else "" for at in range(6)))

    async def git(
        self, *arguments: str, stdin: bytes = b"", read_only: bool = False, quiet: bool = False
    ) -> Finished:
        """`quiet`: without its standard error, for what is to be read by us."""
        script = _QUIET if quiet else _GIT
        argv = ["sh", "-c", script, "sh", self._place, *arguments]
        done = await self._run(argv, stdin=stdin, read_only=read_only)
        if done.exit_code == 128 and "not a git repository" in done.output:
            raise self._no_repository(done.output)
        return done

    @property
    def _place(self) -> str:
        return self.folder if self.folder.startswith("/") else f"./{self.folder}"

    async def _run(
        self, argv: Sequence[str], *, stdin: bytes = b"", read_only: bool = False
    ) -> Finished:
        done = await self.commands.run(
            Command(
                argv,
                timeout_s=self.timeout_s,
                workdir=self.workspace,
                environment=self._environment(read_only),
                stdin=stdin,
                read_only=read_only,
                most_chars=_MOST_CHARS,
                roots=self.also,
            )
        )
        if done.timed_out:
            raise ToolError("timeout", f"git took longer than {self.timeout_s:g} s")
        if done.exit_code == _NO_FOLDER:
            raise ToolError(
                "not_found",
                f"the workspace has no folder {self.folder}",
                next_action_hint="path is the folder of the repository, from the workspace.",
            )
        if done.exit_code == _NO_GIT:
            raise ToolError("git_missing", "git is not installed on this machine")
        return done

    def _environment(self, read_only: bool) -> dict[str, str]:
        # Not -c: these also reach what git starts itself, and nobody has to quote them.
        named = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
        for number, (key, value) in enumerate(_SETTINGS.items()):
            named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        here = {"GIT_CEILING_DIRECTORIES": str(self.workspace.parent)}
        locks = {"GIT_OPTIONAL_LOCKS": "0"} if read_only else {}
        return {**_ENVIRONMENT, **self.identity, **named, **here, **locks}

    def _no_repository(self, said: str) -> ToolError:
        return ToolError(
            "no_repository",
            f"there is no git repository at {self.folder}: {said.strip()[-500:]}",
            next_action_hint="Name its folder with path, or make one in the workspace: git init.",
        )
