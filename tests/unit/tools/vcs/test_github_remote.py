"""github with a real remote over SSH on loopback: push, pull, and every way they can fail."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.commands import Commands
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.git.git import Git, GitSettings
from agentd.sandbox.roots import Root
from agentd.sandbox.ssh import SshAccess
from agentd.tools.vcs.github import github
from tests.sshd import Sshd, running_sshd
from tests.unit.tools.vcs.conftest import git_of

KEY = CallKey("task/call")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh") / "d") as started:
        yield started


@dataclass(frozen=True)
class Pair:
    """A workspace, its bare remote, and another clone of that remote."""

    here: Path
    remote: Path
    other: Path
    git: Git

    async def do(self, action: str, **more: object) -> str:
        return (await github(self.git, KEY, action, **more)).content  # pyright: ignore[reportArgumentType]

    async def refused(self, action: str) -> str:
        with pytest.raises(ToolError) as caught:
            await self.do(action)
        return caught.value.error_type

    def head(self, folder: Path) -> str:
        return git_of(folder, "rev-parse", "main")

    def commit(self, folder: Path, name: str) -> str:
        (folder / name).write_text(name)
        git_of(folder, "add", "-A")
        git_of(folder, "commit", "-q", "-m", name)
        return self.head(folder)


@pytest.fixture
def pair(folder: Path, tmp_path: Path, sshd: Sshd) -> Pair:
    remote, other = tmp_path / "remote.git", tmp_path / "other"
    git_of(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git_of(folder, "remote", "add", "origin", sshd.address(remote))
    git_of(folder, "push", "-q", str(remote), "main")
    git_of(tmp_path, "clone", "-q", str(remote), str(other))
    access = SshAccess(sshd.key, [sshd.known_hosts])
    settings = GitSettings("agentd", "agentd@localhost", access, tmp_path / "mirrors")
    egress = Egress(Rules(private=[f"127.0.0.1:{sshd.port}"]))
    return Pair(folder, remote, other, Git(folder, Commands([Root(folder)]), egress, settings))


@pytest.mark.requirement("S3-16", "S3-17")
async def test_push_and_pull_over_ssh_with_the_key(pair: Pair) -> None:
    pair.commit(pair.here, "mine")
    assert (await pair.do("push")).startswith("Pushed main")
    assert pair.head(pair.remote) == pair.head(pair.here)
    assert await pair.do("status") == "## main...origin/main"
    git_of(pair.other, "pull", "-q")
    theirs = pair.commit(pair.other, "theirs")
    git_of(pair.other, "push", "-q")
    assert (await pair.do("pull")).startswith("Pulled main")
    assert pair.head(pair.here) == theirs
    assert (pair.here / "theirs").read_text() == "theirs"
    assert "up to date" in await pair.do("pull")
    assert "up to date" in await pair.do("push")


async def test_two_at_once_do_not_hinder_each_other(pair: Pair) -> None:
    theirs = pair.commit(pair.other, "theirs")
    git_of(pair.other, "push", "-q")
    async with anyio.create_task_group() as both:
        both.start_soon(pair.do, "pull")
        both.start_soon(pair.do, "pull")
    assert pair.head(pair.here) == theirs


async def test_a_new_branch_is_made_by_its_push(pair: Pair) -> None:
    git_of(pair.here, "switch", "-q", "-c", "feature/one")
    assert await pair.refused("pull") == "no_upstream"
    assert await pair.do("push")
    assert git_of(pair.remote, "rev-parse", "feature/one") == pair.head(pair.here)
    assert await pair.do("status") == "## feature/one...origin/feature/one"


async def test_nothing_is_forced_in_either_direction(pair: Pair) -> None:
    theirs = pair.commit(pair.other, "theirs")
    git_of(pair.other, "push", "-q")
    assert await pair.refused("push") == "diverged"  # only behind: nothing to send
    mine = pair.commit(pair.here, "mine")
    assert await pair.refused("push") == "diverged"
    assert await pair.refused("pull") == "diverged"
    assert await pair.refused("push") == "diverged"  # now that their commits are known here
    assert (pair.head(pair.remote), pair.head(pair.here)) == (theirs, mine)


async def test_local_changes_are_not_overwritten(pair: Pair) -> None:
    before = pair.head(pair.here)
    (pair.other / "a.txt").write_text("theirs\n")
    pair.commit(pair.other, "x")
    git_of(pair.other, "push", "-q")
    (pair.here / "a.txt").write_text("mine\n")
    with pytest.raises(ToolError, match=r"a\.txt"):
        await pair.do("pull")
    assert (pair.here / "a.txt").read_text() == "mine\n"
    assert pair.head(pair.here) == before


async def test_a_key_that_is_not_accepted(pair: Pair, sshd: Sshd) -> None:
    for key in (sshd.stranger, None):
        access = SshAccess(key, [sshd.known_hosts])
        git = replace(pair.git, settings=replace(pair.git.settings, access=access))
        assert await replace(pair, git=git).refused("pull") == "auth_refused"


async def test_a_key_that_can_not_be_used(pair: Pair, sshd: Sshd, tmp_path: Path) -> None:
    key = tmp_path / "key"
    git = replace(
        pair.git,
        settings=replace(pair.git.settings, access=SshAccess(key, [sshd.known_hosts])),
    )
    with pytest.raises(ToolError, match="is not there"):
        await replace(pair, git=git).do("pull")
    key.write_text(sshd.key.read_text())
    key.chmod(0o644)
    with pytest.raises(ToolError, match="other users"):
        await replace(pair, git=git).do("pull")


async def test_a_host_that_does_not_answer(pair: Pair, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        git_of(pair.here, "remote", "set-url", "origin", f"ssh://u@127.0.0.1:{port}/x")
        git = replace(
            pair.git,
            egress=Egress(Rules(private=[f"127.0.0.1:{port}"])),
            settings=replace(pair.git.settings, timeout_s=0.5),
        )
        assert await replace(pair, git=git).refused("pull") == "timeout"
        with anyio.fail_after(5):  # killed, but the kernel takes its time
            while any(f"[127.0.0.1]:{port}" in each for each in command_lines()):  # noqa: ASYNC110 - of nobody
                await anyio.sleep(0.01)
    git = replace(git, settings=pair.git.settings)
    assert await replace(pair, git=git).refused("pull") == "unreachable"


def command_lines() -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text())
    return found


async def test_a_host_that_is_not_known(pair: Pair, sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known hosts"
    access = SshAccess(sshd.key, [known])
    git = replace(pair.git, settings=replace(pair.git.settings, access=access))
    assert await replace(pair, git=git).refused("pull") == "host_key_unknown"
    assert not known.exists()
    trusting = replace(pair.git.settings, access=replace(access, accept_new_hosts=True))
    git = replace(pair.git, settings=trusting)
    assert "up to date" in await replace(pair, git=git).do("pull")
    assert f"[127.0.0.1]:{sshd.port}" in known.read_text()
    other = sshd.known_hosts.read_text().split()
    known.write_text(f"{other[0]} {(sshd.key.with_suffix('.pub')).read_text()}")
    assert await replace(pair, git=git).refused("pull") == "host_key_unknown"


async def test_a_server_that_refuses(pair: Pair) -> None:
    hook = pair.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on a Friday\nexit 1\n")
    hook.chmod(0o755)
    pair.commit(pair.here, "mine")
    with pytest.raises(ToolError, match="not on a Friday") as caught:
        await pair.do("push")
    assert caught.value.error_type == "push_refused"


async def test_a_remote_that_is_not_there(pair: Pair, sshd: Sshd, tmp_path: Path) -> None:
    git_of(pair.here, "remote", "set-url", "origin", sshd.address(tmp_path / "none.git"))
    with pytest.raises(ToolError, match=r"none\.git"):
        await pair.do("pull")


async def test_nothing_is_left_behind_but_the_mirror(pair: Pair, tmp_path: Path) -> None:
    pair.commit(pair.here, "mine")
    await pair.do("push")
    (mirror,) = (tmp_path / "mirrors").iterdir()
    assert mirror.suffix == ".git"
    assert not list(mirror.glob("hooks/*"))


async def test_the_same_where_there_is_no_server(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `ssh` that runs its last word here: whatever else may be missing, git goes this way."""
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/said\nfor last; do :; done\neval "$last"'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    remote, other = tmp_path / "remote.git", tmp_path / "other"
    git_of(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git_of(folder, "remote", "add", "origin", f"me@localhost:{remote}")
    settings = GitSettings("agentd", "a@localhost", SshAccess(None, []), tmp_path / "mirrors")
    git = Git(folder, Commands([Root(folder)]), Egress(Rules(private=["localhost:22"])), settings)
    pair = Pair(folder, remote, other, git)
    assert await pair.refused("pull") == "no_upstream"
    assert (await pair.do("push")).startswith("Pushed main")
    git_of(tmp_path, "clone", "-q", str(remote), str(other))
    theirs = pair.commit(other, "theirs")
    git_of(other, "push", "-q")
    assert await pair.refused("push") == "diverged"
    assert (await pair.do("pull")).startswith("Pulled main")
    assert pair.head(folder) == theirs
    said = (tmp_path / "said").read_text()
    assert "StrictHostKeyChecking=yes" in said
    assert "HostKeyAlias=localhost" in said
    assert "HostName=127.0.0.1" in said or "HostName=::1" in said
