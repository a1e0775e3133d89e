"""The main job with hands: clone, find the failing test, mend the file, run the tests, commit.

Played by a scripted model through every layer: daemon, loop, dispatch, sandbox, real git.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.confined import needs_sandbox
from tests.processes import Home, new_home

_CODE = "def average(numbers):\n    return sum(numbers) / len(numbers) + 1\n"
_TEST = """\
import unittest
from stats import average

class AverageTest(unittest.TestCase):
    def test_of_three(self):
        self.assertEqual(average([1, 2, 3]), 2)

if __name__ == "__main__":
    unittest.main()
"""
_SCRIPT = """
[[turn]]
text = "I get the repository."
[[turn.call]]
tool = "exec"
input = {{ command = "git clone -q {origin} . && ls" }}

[[turn]]
expect = ["stats.py", "test_stats.py"]
[[turn.call]]
tool = "bash"
input = {{ command = "{python} -B test_stats.py" }}

[[turn]]
expect = ["AssertionError: 3.0 != 2", "[exit code 1]"]
[[turn.call]]
tool = "grep"
input = {{ pattern = "def average", include = "*.py" }}
[[turn.call]]
tool = "read"
input = {{ path = "stats.py" }}

[[turn]]
expect = ["stats.py:0", "len(numbers) + 1"]
[[turn.call]]
tool = "edit"
input = {{ path = "stats.py", old_text = "len(numbers) + 1", new_text = "len(numbers)" }}

[[turn]]
[[turn.call]]
tool = "bash"
input = {{ command = "{python} -B test_stats.py && echo all is well" }}

[[turn]]
expect = ["OK", "all is well"]
[[turn.call]]
tool = "github"
input = {{ action = "commit", files = ["stats.py"], message = "Average is no longer one too much" }}

[[turn]]
[[turn.call]]
tool = "github"
input = {{ action = "log" }}

[[turn]]
expect = ["Average is no longer one too much"]
[[turn.call]]
tool = "complete_task"
input = {{ summary = "Mended stats.py: average was one too much. Tests pass; committed." }}
"""


def _git(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _repository(folder: Path) -> Path:
    """A repository of its owner: one module, and one test that fails."""
    folder.mkdir()
    (folder / "stats.py").write_text(_CODE)
    (folder / "test_stats.py").write_text(_TEST)
    _git("init", "-q", "-b", "main", folder=folder)
    _git("add", ".", folder=folder)
    _git("commit", "-q", "-m", "First", folder=folder)
    return folder


def _home(path: Path, origin: Path) -> Home:
    """A home whose commands also see the origin and this Python, and may not change them."""
    python = Path(sys.base_prefix) / "bin/python3"
    script = path / "script.toml"
    script.write_text(_SCRIPT.format(origin=origin, python=python))
    home = new_home(path, AGENT__MODEL=f"scripted:{script}")
    roots = [origin] if python.is_relative_to("/usr") else [origin, Path(sys.base_prefix)]
    with (home.path / "agentd.toml").open("a") as file:
        for root in roots:
            file.write(f'\n[[workspace.roots]]\npath = "{root}"\n')
    return home


@needs_sandbox
@pytest.mark.timeout(60)
async def test_a_task_clones_a_repository_mends_it_runs_its_tests_and_commits(
    tmp_path: Path,
) -> None:
    origin = _repository(tmp_path / "origin")
    home = _home(tmp_path, origin)
    task_id = await home.enqueue("The tests of our repository fail. Mend it.")
    done = await home.run("run", "--drain", timeout_s=50)
    task = await home.task(task_id)
    assert task["state"] == "completed", (task["error"], done.err)
    assert "average was one too much" in task["output"]
    log = _git("log", "--format=%an|%s", folder=home.workspace).splitlines()
    assert log == ["agentd|Average is no longer one too much", "Ann|First"]
    assert (home.workspace / "stats.py").read_text() == _CODE.replace(" + 1", "")
    assert (origin / "stats.py").read_text() == _CODE
    assert _git("status", "--short", folder=home.workspace) == ""
