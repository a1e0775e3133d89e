"""A workspace with a repository, and the capability that the tool gets."""

import subprocess
from pathlib import Path

import pytest

from agentd.sandbox.commands import Commands
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.git.git import Git, GitSettings
from agentd.sandbox.roots import Root
from agentd.sandbox.ssh import SshAccess


def git_of(folder: Path, *arguments: str) -> str:
    """Plain git, as a person runs it."""
    command = ["git", "-c", "user.name=Person", "-c", "user.email=p@example.org", *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one commit on main."""
    made = tmp_path / "workspace"
    made.mkdir()
    git_of(made, "init", "-q", "-b", "main")
    (made / "a.txt").write_text("one\n")
    git_of(made, "add", "-A")
    git_of(made, "commit", "-q", "-m", "a first commit")
    return made


@pytest.fixture
def git(folder: Path, tmp_path: Path) -> Git:
    access = SshAccess(None, [tmp_path / "known_hosts"])
    settings = GitSettings("agentd", "agentd@localhost", access, tmp_path / "mirrors")
    return Git(folder, Commands([Root(folder)]), Egress(Rules()), settings)
