"""github without a network: status, commit, log, and what it says when it can not."""

import re
import shutil
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.git.git import Git
from agentd.toolkit.definition import tool_of
from agentd.tools.vcs.github import github
from tests.unit.tools.vcs.conftest import git_of

KEY = CallKey("task/call")


async def refused(git: Git, action: str, **more: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await github(git, KEY, action, **more)  # pyright: ignore[reportArgumentType]
    return caught.value


@pytest.mark.requirement("S3-16")
async def test_status_says_what_differs(git: Git, folder: Path) -> None:
    assert (await github(git, KEY, "status")).content == "## main"
    (folder / "a.txt").write_text("two\n")
    (folder / "b.txt").touch()
    assert (await github(git, KEY, "status")).content == "## main\n M a.txt\n?? b.txt"


@pytest.mark.requirement("S3-16", "S3-17")
async def test_a_commit_is_the_agents_own(git: Git, folder: Path) -> None:
    git_of(folder, "config", "user.name", "Somebody Else")
    (folder / "a.txt").write_text("two\n")
    done = await github(git, KEY, "commit", message="feat: add new feature\n\nFor a reason.")
    assert done.commit == git_of(folder, "rev-parse", "HEAD")
    assert "feat: add new feature" in done.content
    who = git_of(folder, "log", "-1", "--format=%an <%ae> %cn <%ce>")
    assert who == "agentd <agentd@localhost> agentd <agentd@localhost>"
    message = git_of(folder, "log", "-1", "--format=%B")
    assert re.fullmatch(
        r"feat: add new feature\n\nFor a reason\.\n\nAgentd-Call: [0-9a-f]{20}", message
    )


async def test_a_commit_takes_only_the_files_that_are_named(git: Git, folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "b.txt").touch()
    (folder / ":c*").touch()
    await github(git, KEY, "commit", files=["a.txt", ":c*"], message="Those two")
    shown = git_of(folder, "show", "--name-status", "--format=", "HEAD")
    assert sorted(shown.splitlines()) == ["A\t:c*", "D\ta.txt"]
    assert (await github(git, KEY, "status")).content == "## main\n?? b.txt"


async def test_log_shows_the_last_ten(git: Git, folder: Path) -> None:
    for number in range(11):
        git_of(folder, "commit", "-q", "--allow-empty", "-m", f"number {number}")
    lines = (await github(git, KEY, "log")).content.splitlines()
    assert len(lines) == 10
    assert re.fullmatch(r"[0-9a-f]{7,} \d{4}-\d\d-\d\d Person: number 10", lines[0])


async def test_a_repository_below_the_workspace(git: Git, folder: Path) -> None:
    (folder / "below").mkdir()
    git_of(folder / "below", "init", "-q", "-b", "trunk")
    (folder / "below/x").touch()
    assert (await github(git, KEY, "log", path="below")).content == "There are no commits yet."
    done = await github(git, KEY, "commit", message="x", path="below")
    assert (done.branch, done.commit) == ("trunk", git_of(folder / "below", "rev-parse", "HEAD"))


async def test_what_is_wrong_is_said_in_words(git: Git, folder: Path) -> None:
    assert (await refused(git, "commit")).error_type == "invalid_arguments"
    assert (await refused(git, "commit", message="x")).error_type == "nothing_to_commit"
    missing = await refused(git, "commit", message="x", files=["nothing"])
    assert missing.error_type == "not_found"
    assert "nothing" in missing.message
    assert (await refused(git, "status", path="nowhere")).error_type == "not_found"
    assert (await refused(git, "push")).error_type == "no_remote"
    assert (await refused(git, "pull")).error_type == "no_remote"
    (folder / ".git/index.lock").touch()
    (folder / "new").touch()
    locked = await refused(git, "commit", message="x")
    assert (locked.error_type, ".git/index.lock" in locked.message) == ("locked", True)
    (folder / ".git/index.lock").unlink()
    git_of(folder, "checkout", "-q", "--detach")
    assert (await refused(git, "push")).error_type == "no_branch"


@pytest.mark.parametrize("action", ["status", "log", "commit", "pull", "push"])
async def test_without_a_repository(action: str, git: Git, folder: Path) -> None:
    shutil.rmtree(folder / ".git")
    error = await refused(git, action, message="x")
    assert error.error_type == "no_repository"
    assert "git init" in (error.next_action_hint or "")


@pytest.mark.parametrize(
    "address",
    [
        "/srv/other.git",
        "file:///srv/other.git",
        "ext::sh -c 'touch /tmp/x'",
        "git://example.org/x",
        "http://example.org/x",
        "https://user:password@example.org/x",
        "https://example.org/x y",
        "ssh://-oProxyCommand=touch/x",
        "-oProxyCommand=touch:x",
        "ssh://u@h:99999/x",
        "host:-x",
        "host::x",
        "fd::17/x",
    ],
)
async def test_remotes_that_are_no_plain_address_are_refused(
    address: str, git: Git, folder: Path
) -> None:
    git_of(folder, "config", "remote.origin.url", address)
    for action in ("pull", "push"):
        assert (await refused(git, action)).error_type == "remote_refused"


@pytest.mark.parametrize("address", ["https://127.0.0.1/x", "root@localhost:x", "ssh://[::1]/x"])
async def test_private_addresses_are_refused(address: str, git: Git, folder: Path) -> None:
    git_of(folder, "remote", "add", "origin", address)
    assert (await refused(git, "pull")).error_type == "address_refused"


async def test_a_commit_that_a_crash_cut_off_is_found_by_its_call(git: Git, folder: Path) -> None:
    reconcile = getattr(tool_of(github), "reconcile", None)
    assert reconcile is not None
    arguments = {"action": "commit", "message": "x"}
    (folder / "b.txt").touch()
    assert await reconcile(git, KEY, **arguments) is None
    done = await github(git, KEY, "commit", message="x")
    git_of(folder, "commit", "-q", "--allow-empty", "-m", "a later one")
    found = await reconcile(git, KEY, **arguments)
    assert found.commit == done.commit
    assert await reconcile(git, CallKey("another"), **arguments) is None
    assert await reconcile(git, KEY, "push") is None


@pytest.mark.requirement("S3-16", "C26")
def test_it_is_called_github_and_git_is_its_command() -> None:
    made = tool_of(github)
    assert made is not None
    assert (made.name, made.group, made.timeout_s) == ("github", "vcs", 30)
    for said, groups in {
        "/git status": ("status", None),
        '/git commit "feat: add new feature"': ("commit", "feat: add new feature"),
        "/git push": ("push", None),
        "/git pull": ("pull", None),
        "/git log": ("log", None),
    }.items():
        found = re.fullmatch(made.slash or "", said)
        assert found is not None, said
        assert found.group("action", "message") == groups
    assert re.fullmatch(made.slash or "", "/git reset") is None
