"""Git outside the sandbox, with a network and the key: only ever on a bare repository of ours.

Nothing of the workspace's repository is read here but a bundle of its commits. The folder may be
deleted at any time; it only spares fetching everything again.
"""

import hashlib
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from agentd.domain.errors import ToolError
from agentd.sandbox.finish import Finished
from agentd.sandbox.git.address import Address
from agentd.sandbox.host_process import run_on_host, small_environment
from agentd.sandbox.ssh import SshAccess, ssh_arguments

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "maintenance.auto": "false",
    "push.recurseSubmodules": "no",
    "transfer.bundleURI": "false",
}
_REMOTE = "refs/agentd/remote"
_LOCAL = "refs/agentd/local"
_MOST_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Mirror:
    """Of one remote. `address`: its number, which was checked; no other is connected to."""

    path: Path
    remote: Address
    address: str
    access: SshAccess
    timeout_s: float

    async def prepare(self) -> None:
        if not await anyio.Path(self.path, "HEAD").is_file():
            await anyio.Path(self.path).mkdir(parents=True, exist_ok=True, mode=0o700)
            await self._must("init", "--quiet", "--bare", "--template=", str(self.path))

    async def fetch(self, branch: str) -> str | None:
        """Where the remote's branch stands now; None: it has no such branch."""
        refspec = f"+refs/heads/{branch}:{self.ref(branch)}"
        options = ("--quiet", "--no-tags", "--no-write-fetch-head")
        done = await self._git("fetch", *options, self.remote.text, refspec)
        if "couldn't find remote ref" in done.output:
            return None
        self._check(done)
        return (await self._must("rev-parse", "--verify", self.ref(branch))).output.strip()

    async def take(self, bundle: Path, branch: str, commit: str) -> None:
        """Take in the commits of a bundle. Raises ToolError when it does not hold `commit`."""
        if not stat.S_ISREG((await anyio.Path(bundle).lstat()).st_mode):
            raise ToolError("git_failed", "git wrote something that is no bundle")
        refspec = f"+HEAD:{_LOCAL}/{branch}"
        await self._must(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(bundle), refspec
        )
        held = (await self._must("rev-parse", "--verify", f"{_LOCAL}/{branch}")).output.strip()
        if held != commit:
            raise ToolError("git_failed", "the repository changed while it was being pushed")

    async def is_ahead(self, commit: str, of: str) -> bool:
        """Whether `of` is among the ancestors of `commit`."""
        return (await self._git("merge-base", "--is-ancestor", of, commit)).exit_code == 0

    async def push(self, commit: str, branch: str) -> str:
        """Without force: the server decides, too. What git said."""
        options = ("--no-verify", "--no-follow-tags", "--no-signed", "--porcelain")
        refspec = f"{commit}:refs/heads/{branch}"
        return (await self._must("push", *options, self.remote.text, refspec)).output

    @contextmanager
    def drop(self) -> Generator[Path]:
        """An empty folder into which the sandbox may write; gone after the block."""
        folder = Path(tempfile.mkdtemp(dir=self.path.parent, prefix="drop-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def ref(self, branch: str) -> str:
        """Where the mirror notes a branch of the remote."""
        return f"{_REMOTE}/{branch}"

    async def _must(self, *arguments: str) -> Finished:
        done = await self._git(*arguments)
        self._check(done)
        return done

    def _check(self, done: Finished) -> None:
        if done.timed_out:
            raise ToolError("timeout", f"{self.remote.host} took longer than {self.timeout_s:g} s")
        if done.exit_code != 0:
            raise _in_words(done.output, self.remote)

    async def _git(self, *arguments: str) -> Finished:
        settings = {**_SETTINGS, "http.curloptResolve": self._pinned()}
        words = [word for item in settings.items() for word in ("-c", "=".join(item))]
        return await run_on_host(
            ["git", *words, *arguments],
            environment=self._environment(),
            folder=self.path,
            timeout_s=self.timeout_s,
            most_chars=_MOST_CHARS,
        )

    def _pinned(self) -> str:
        number = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.remote.host}:{self.remote.port}:{number}"

    def _environment(self) -> dict[str, str]:
        ssh = ssh_arguments(
            self.access, host=self.remote.host, port=self.remote.port, address=self.address
        )
        return {
            **small_environment(),
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_ASKPASS": "true",
            "GIT_CEILING_DIRECTORIES": str(self.path),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(self.path),
            "GIT_SSH_COMMAND": shlex.join(ssh),
            "GIT_SSH_VARIANT": "ssh",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(self.path),  # the user's .netrc holds passwords for https
            "LC_ALL": "C",
        }


def mirror_path(folder: Path, remote: Address) -> Path:
    """The place of a remote's mirror."""
    return folder / f"{hashlib.sha256(remote.text.encode()).hexdigest()[:24]}.git"


# What git and ssh say, what it is, and what to do. The first that fits counts.
_WORDS = (
    (
        "Host key verification failed",
        "host_key_unknown",
        "the host key of {host} is not known, or another one than is known",
        "Only the owner of this agentd can mend that: known_hosts_path and accept_new_hosts.",
    ),
    (
        "UNPROTECTED PRIVATE KEY FILE",
        "auth_refused",
        "the key for {host} can be read by other users, so that ssh does not use it",
        "Only the owner of this agentd can mend that: chmod 600.",
    ),
    (
        "no such identity",
        "auth_refused",
        "the key for {host} is not there",
        "Only the owner of this agentd can mend that: git.ssh_key_path.",
    ),
    (
        "Permission denied (",
        "auth_refused",
        "{host} does not accept the key",
        "Only the owner of this agentd can mend that: git.ssh_key_path names the private key.",
    ),
    (
        "could not read Username",
        "auth_refused",
        "{host} wants a user name and a password, and there are none",
        "Use the SSH address of the repository; the owner's key is tried there.",
    ),
    ("Connection refused", "unreachable", "{host} takes no connections at this port", None),
    ("timed out", "unreachable", "{host} does not answer", "Try again later."),
    (
        "cannot lock ref",
        "busy",
        "somebody else is exchanging commits with {host} at this moment",
        "Try it once more.",
    ),
    (
        "[rejected]",
        "diverged",
        "{host} has commits that are not here; nothing was pushed",
        "Pull first.",
    ),
    (
        "[remote rejected]",
        "push_refused",
        "{host} refuses the push: {said}",
        None,
    ),
)


def _in_words(said: str, remote: Address) -> ToolError:
    short = " ".join(said.split())[-500:]
    for sign, kind, text, hint in _WORDS:
        if sign in said:
            message = text.format(host=remote.host, said=short)
            return ToolError(kind, message, next_action_hint=hint)
    return ToolError("git_failed", f"git says: {short}")
