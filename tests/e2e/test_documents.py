"""Every command and every example of README.md and docs/ works as it stands there."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentd import __version__
from agentd.config import Config
from agentd.config_errors import fields
from tests.confined import needs_sandbox
from tests.processes import Home, new_home

_ROOT = Path(__file__).parents[2]
_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'


def blocks(document: str, language: str) -> list[str]:
    """The code blocks of one language."""
    text = (_ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[str]:
    """The `agentd` commands of the shell blocks, without their comments."""
    lines = [line for block in blocks(document, "sh") for line in block.splitlines()]
    return [line.split("   #")[0].strip() for line in lines if line.startswith("agentd ")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """With the notes of the demo, the tools that the documents show, and a model that finishes."""
    script = tmp_path / "done.toml"
    script.write_text(_DONE)
    made = new_home(tmp_path, AGENT__MODEL=f"scripted:{script}")
    notes = made.workspace / "notes"
    notes.mkdir()
    for note in (_ROOT / "config/demo/notes").iterdir():
        (notes / note.name).write_text(note.read_text())
    for document in ("README.md", "docs/tools.md"):
        (example,) = blocks(document, "python")
        (made.path / "tools" / f"{Path(document).stem.lower()}.py").write_text(example)
    (tmp_path / "find.toml").write_text(blocks("docs/tools.md", "toml")[0])
    return made


async def run_all(home: Home, lines: list[str], folder: Path, known: str | None = None) -> None:
    """`known`: what ID stands for; a task if nothing else is said."""
    os.chdir(folder)
    if known is None and any("ID" in shlex.split(line) for line in lines):
        known = await home.enqueue("An earlier task.")
    for line in lines:
        words = [known or word if word == "ID" else word for word in shlex.split(line)][1:]
        done = await home.run(*words)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"


async def test_the_commands_of_the_readme(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = commands("README.md")
    assert "agentd run" in lines
    async with home.daemon():
        await run_all(home, [line for line in lines if line != "agentd run"], tmp_path)


async def test_the_commands_of_the_guide_to_tools(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await run_all(home, commands("docs/tools.md"), tmp_path)
    listed = await home.run("task", "list", "--json", "--state", "completed")
    assert "release is in 1 lines" in listed.out


async def test_the_commands_of_the_guide_to_schedules(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    added = json.loads((await home.run("schedule", "add", "@weekly", "x", "--json")).out)
    await run_all(home, commands("docs/schedules.md"), tmp_path, added["id"])
    left = json.loads((await home.run("schedule", "list", "--json")).out)
    assert [each["expression"] for each in left] == ["every 90m", "@daily", "0 9 * * 1-5"]


async def test_the_commands_of_the_guide_to_the_service(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = commands("docs/service.md")
    assert "agentd health" in lines
    watched = Home(home.path, {**home.variables, "AGENTD_WATCHDOG__FIRST_SECONDS": "0"})
    async with watched.daemon():
        with anyio.fail_after(10):
            while not list((home.path / "run").glob("*.health.json")):  # noqa: ASYNC110 - a file
                await anyio.sleep(0.01)
        await run_all(home, lines, tmp_path)


@needs_sandbox
async def test_the_commands_of_the_guides_to_files_and_commands(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (home.workspace / "sub").mkdir()
    await run_all(home, commands("docs/files.md"), tmp_path)
    first, second, third = commands("docs/commands.md")
    await run_all(home, [first, third], tmp_path)
    done = await home.run(*shlex.split(second)[1:])
    assert "[exit code 3]" in done.out


@needs_sandbox
async def test_the_patch_of_the_guide_to_files(home: Home) -> None:
    await home.run("fs", "write", "notes/plan.md", "one, 2, three")
    (patch,) = blocks("docs/files.md", "patch")
    done = await home.run("fs", "apply-patch", patch)
    assert done.code == 0, done.err
    assert (home.workspace / "notes/more.md").read_text() == "something else\n"


@needs_sandbox
async def test_the_commands_of_the_guide_to_git(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["init"], ["commit", "--allow-empty", "-m", "One"]):
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *words]
        subprocess.run(git, cwd=home.workspace, check=True, capture_output=True)
    await run_all(home, commands("docs/git.md"), tmp_path)


async def test_the_commands_of_the_guide_to_results(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (home.workspace / "long.txt").write_text("word\n" * 5000)
    script = tmp_path / "long.toml"
    script.write_text('[[turn]]\n[[turn.call]]\ntool = "ls"\ninput = { path = "many" }\n' + _DONE)
    for number in range(800):
        (home.workspace / "many" / f"a file with a long name {number}").mkdir(parents=True)
    await home.enqueue("List them.", "--model", f"scripted:{script}")
    assert (await home.run("run", "--drain")).code == 0
    stored = await home.run("sql", "SELECT id FROM all_large_results", "--json")
    (row,) = json.loads(stored.out)
    await run_all(home, commands("docs/results.md"), tmp_path, row["id"])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("prompt", [None, "Write a report about the notes."])
def test_the_demo(prompt: str | None, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AGENTD_HOME": str(tmp_path / "demo"),
        "AGENTD_VENV": sys.prefix,
    }
    done = subprocess.run(
        [_ROOT / "scripts/demo", *([prompt] if prompt else [])],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no language model" in done.stdout
    assert re.search(r"^[0-9a-f-]{36} completed$", done.stdout, flags=re.MULTILINE)
    assert "send Maria the 14 refused invoices" in done.stdout
    assert str(tmp_path / "demo" / "agentd.duckdb") in done.stdout
    if prompt:
        assert prompt in (tmp_path / "demo/workspace/report.md").read_text()
    assert not list((tmp_path / "demo/run").iterdir()), "the daemon was left running"


def test_every_setting_stands_in_the_document() -> None:
    text = (_ROOT / "docs/configuration.md").read_text()
    for key, _ in fields(Config):
        assert f"| `{key}` |" in text


def test_links_lead_somewhere() -> None:
    for document in [_ROOT / "README.md", *(_ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_change_log_knows_this_version() -> None:
    assert f"## {__version__}" in (_ROOT / "CHANGELOG.md").read_text()


def test_nothing_is_longer_than_it_may_be(tmp_path: Path) -> None:
    sizes = [sys.executable, str(_ROOT / "scripts/sizes.py")]
    (tmp_path / "long.py").write_text("x = 1\n" * 401)
    (tmp_path / "deep.py").write_text("def f():\n" + "    x = 1\n" * 61)
    (tmp_path / "fine.py").write_text("def f():\n    return 1\n")
    done = subprocess.run([*sizes, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "long.py: 401 lines" in done.stdout
    assert "deep.py:1: f has 62 lines" in done.stdout
    assert "fine.py" not in done.stdout
