"""The tool of git as a command: everything that it needs is there."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Agentd


@pytest.mark.requirement("S3-16", "S3-17")
def test_git_in_the_workspace_of_a_home(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "agentd.toml").write_text('[git]\nname = "Robin"\n')
    subprocess.run(["git", "init", "-q", "-b", "main", home / "workspace"], check=True)
    (home / "workspace/a.txt").touch()
    assert "?? a.txt" in agentd("vcs", "github", "status").out
    done = agentd("vcs", "github", "commit", "--message", "feat: add new feature")
    assert (done.code, "feat: add new feature" in done.out) == (0, True)
    assert "Robin: feat: add new feature" in agentd("vcs", "github", "log").out
    refused = agentd("vcs", "github", "push")
    assert (refused.code, "there is no remote origin" in refused.err) == (1, True)
