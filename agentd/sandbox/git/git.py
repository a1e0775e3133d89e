"""What an agent may do with git: look, commit, and go forward together with one remote.

Pull: the mirror fetches outside the sandbox, the workspace's repository fetches from the mirror
inside it. Push: a bundle comes out of the sandbox, the mirror takes it in and pushes it.
"""

import hashlib
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.egress import Egress
from agentd.sandbox.finish import Finished
from agentd.sandbox.git.address import parse_address
from agentd.sandbox.git.mirror import Mirror, mirror_path
from agentd.sandbox.git.repository import Facts, Repository
from agentd.sandbox.roots import Root
from agentd.sandbox.ssh import SshAccess

TRAILER = "Agentd-Call"
_BRANCH = re.compile(
    r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)))[A-Za-z0-9_][A-Za-z0-9._/@+=#-]*(?<![./])"
)
_REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class GitSettings:
    """`mirrors`: a folder of ours. `timeout_s`: of one command of git."""

    name: str
    email: str
    access: SshAccess
    mirrors: Path
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a branch stands now. `changed`: it stood elsewhere before. `said`: by git."""

    branch: str
    commit: str
    changed: bool
    said: str = ""


@dataclass(frozen=True, slots=True)
class Git(Capability):
    """`commands`: their first root is the workspace. `turns`: of mirrors."""

    workspace: Path
    commands: Commands
    egress: Egress
    settings: GitSettings
    turns: dict[Path, anyio.Lock] = field(default_factory=dict[Path, anyio.Lock])

    async def status(self, folder: str) -> str:
        repository = await self._opened(folder)
        done = await repository.git(
            "status", "--short", "--branch", "--ignore-submodules=dirty", read_only=True
        )
        return _whole(done).rstrip()

    async def log(self, folder: str, most: int) -> str:
        repository = await self._opened(folder)
        if not (await repository.facts()).commit:
            return ""
        form = "--format=%h %ad %an: %s"
        done = await repository.git("log", f"-{most}", form, "--date=short", read_only=True)
        return _whole(done).rstrip()

    async def commit(self, folder: str, files: Sequence[str], message: str, key: str) -> Moved:
        """Stage `files` and commit what is staged. `key`: of the call, to find the commit by."""
        repository = await self._opened(folder)
        _whole(await repository.git("add", "--all", "--", *files))
        staged = await repository.git("diff", "--cached", "--quiet", "--no-ext-diff")
        if staged.exit_code == 0:
            raise ToolError(
                "nothing_to_commit",
                f"nothing in {' '.join(files)} differs from the last commit",
                next_action_hint="The action status shows what differs.",
            )
        text = f"{message.strip()}\n\n{_trailer(key)}\n"
        options = ("--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-")
        done = await repository.git("commit", *options, stdin=text.encode())
        said = _whole(done).rstrip()
        facts = await repository.facts()
        return Moved(facts.branch, facts.commit, True, said)

    async def find_commit(self, folder: str, key: str) -> Moved | None:
        """The commit that the call `key` made, if it did."""
        repository = await self._opened(folder)
        facts = await repository.facts()
        if not facts.commit:
            return None
        done = await repository.git(
            "log", "-1", "--format=%H", "--fixed-strings", f"--grep={_trailer(key)}", quiet=True
        )
        found = done.output.strip()
        return Moved(facts.branch, found, True) if _COMMIT.fullmatch(found) else None

    async def pull(self, folder: str) -> Moved:
        """Go forward to where the remote's branch is. Raises ToolError when both have gone on."""
        repository = await self._opened(folder)
        facts = _checked(await repository.facts())
        branch = _upstream(facts)
        async with self._mirror(facts.fetch_url) as mirror:
            theirs = await mirror.fetch(branch)
            if theirs is None:
                raise _no_upstream(facts, branch)
            if theirs == facts.commit:
                return Moved(facts.branch, theirs, False)
            await self._take_in(folder, facts, mirror, branch)
            options = ("--ff-only", "--no-verify-signatures", "--no-autostash")
            done = await repository.git("merge", *options, theirs)
        if "Not possible to fast-forward" in done.output or "refusing to merge" in done.output:
            raise ToolError(
                "diverged",
                f"{facts.branch} and {facts.remote}/{branch} have both gone on; nothing was merged",
                next_action_hint=f"What they have is at {facts.remote}/{branch}: merge it in the "
                "workspace (git merge), then push.",
            )
        said = _whole(done).rstrip()
        now = (await repository.facts()).commit
        return Moved(facts.branch, now, now != facts.commit, said)

    async def push(self, folder: str) -> Moved:
        """Bring the remote's branch to where this one is; only forward."""
        repository = await self._opened(folder)
        facts = _checked(await repository.facts())
        if not facts.commit:
            raise ToolError("nothing_to_push", f"{facts.branch} has no commits yet")
        branch = _upstream(facts)
        async with self._mirror(facts.push_url) as mirror:
            theirs = await mirror.fetch(branch)
            changed = theirs != facts.commit
            said = await self._send(folder, facts, mirror, branch, theirs) if changed else ""
        await self._note_upstream(repository, facts, branch)
        return Moved(facts.branch, facts.commit, changed, said)

    async def _take_in(self, folder: str, facts: Facts, mirror: Mirror, branch: str) -> None:
        """What the mirror has of the branch, as the repository's picture of its remote."""
        near = await self._opened(folder, Root(mirror.path, writable=False))
        here = f"refs/remotes/{facts.remote}/{branch}"
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        _whole(await near.git("fetch", *quiet, str(mirror.path), f"+{mirror.ref(branch)}:{here}"))

    async def _send(
        self, folder: str, facts: Facts, mirror: Mirror, branch: str, theirs: str | None
    ) -> str:
        with mirror.drop() as drop:
            giving = await self._opened(folder, Root(drop))
            if theirs is not None and not await _has(giving, theirs):
                raise _behind(facts, branch)
            less = [] if theirs is None else [f"^{theirs}"]
            bundle = drop / "push.bundle"
            done = await giving.git("bundle", "create", "--quiet", str(bundle), "HEAD", *less)
            if "empty bundle" in done.output:
                raise _behind(facts, branch)
            _whole(done)
            await mirror.take(bundle, branch, facts.commit)
        if theirs is not None and not await mirror.is_ahead(facts.commit, theirs):
            raise _behind(facts, branch)
        return await mirror.push(facts.commit, branch)

    async def _note_upstream(self, repository: Repository, facts: Facts, branch: str) -> None:
        """So that `git status` compares with what the remote has now."""
        there = f"refs/remotes/{facts.remote}/{branch}"
        _whole(await repository.git("update-ref", there, facts.commit))
        if not facts.upstream:
            name = f"branch.{facts.branch}"
            _whole(await repository.git("config", f"{name}.remote", facts.remote))
            _whole(await repository.git("config", f"{name}.merge", f"refs/heads/{branch}"))

    @asynccontextmanager
    async def _mirror(self, url: str) -> AsyncGenerator[Mirror]:
        """The mirror of a remote, for us alone in this daemon."""
        remote = parse_address(url)
        try:
            numbers = await self.egress.addresses(remote.host, remote.port)
        except OSError as error:
            raise ToolError("host_not_found", f"{remote.host} has no address: {error}") from error
        path = mirror_path(self.settings.mirrors, remote)
        mirror = Mirror(path, remote, numbers[0], self.settings.access, self.settings.timeout_s)
        async with self.turns.setdefault(path, anyio.Lock()):
            await mirror.prepare()
            yield mirror

    async def _opened(self, folder: str, *also: Root) -> Repository:
        given = Repository(
            commands=self.commands,
            workspace=self.workspace,
            folder=folder,
            timeout_s=self.settings.timeout_s,
            identity={
                f"GIT_{who}_{what}": value
                for who in ("AUTHOR", "COMMITTER")
                for what, value in (("NAME", self.settings.name), ("EMAIL", self.settings.email))
            },
            also=also,
        )
        if not await anyio.Path(self.workspace).is_dir():
            raise ToolError("no_workspace", f"there is no workspace at {self.workspace}")
        return given


def _trailer(key: str) -> str:
    """In the message of each commit: whether a call that a crash cut off has made it."""
    return f"{TRAILER}: {hashlib.sha256(key.encode()).hexdigest()[:20]}"


def _whole(done: Finished) -> str:
    """The output of a git that went well. Raises ToolError."""
    if done.exit_code == 0:
        return done.output
    said = done.output.strip()[-1500:]
    if ".lock" in said and "File exists" in said:
        raise ToolError(
            "locked",
            f"another git works in this repository, or one was cut off: {said}",
            next_action_hint="If none does: remove that file, then repeat the call.",
        )
    if "did not match any files" in said:
        raise ToolError("not_found", said, next_action_hint="files are paths in the repository.")
    raise ToolError("git_failed", f"git says: {said or 'nothing'} (exit code {done.exit_code})")


def _checked(facts: Facts) -> Facts:
    """What is handed to git outside the sandbox is a plain name, or nothing is handed there."""
    if not facts.branch:
        raise ToolError(
            "no_branch",
            "no branch is checked out",
            next_action_hint="Check one out in the workspace: git switch NAME.",
        )
    upstream = facts.upstream.removeprefix("refs/heads/")
    names_fit = _BRANCH.fullmatch(facts.branch) and (not upstream or _BRANCH.fullmatch(upstream))
    commit_fits = not facts.commit or _COMMIT.fullmatch(facts.commit)
    if not (names_fit and commit_fits and _REMOTE.fullmatch(facts.remote)):
        raise ToolError(
            "unfit_name",
            f"the branch {facts.branch!r} or its upstream has a name that can not be used here",
            next_action_hint="Letters, digits and . _ - / @ + = # are possible.",
        )
    url = facts.fetch_url or facts.push_url
    if not url:
        raise ToolError(
            "no_remote",
            f"there is no remote {facts.remote}",
            next_action_hint="Add it in the workspace: git remote add origin ADDRESS.",
        )
    return facts


def _upstream(facts: Facts) -> str:
    return facts.upstream.removeprefix("refs/heads/") or facts.branch


def _no_upstream(facts: Facts, branch: str) -> ToolError:
    return ToolError(
        "no_upstream",
        f"{facts.remote} has no branch {branch}",
        next_action_hint="The action push makes it.",
    )


def _behind(facts: Facts, branch: str) -> ToolError:
    return ToolError(
        "diverged",
        f"{facts.remote}/{branch} has commits that {facts.branch} has not; nothing was pushed",
        next_action_hint="Use the action pull first.",
    )


async def _has(repository: Repository, commit: str) -> bool:
    done = await repository.git("cat-file", "-e", f"{commit}^{{commit}}", read_only=True)
    return done.exit_code == 0
