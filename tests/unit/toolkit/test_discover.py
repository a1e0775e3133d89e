"""Adding a tool is one new file: found in the package, in entry points and in the home."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.config import load_config
from agentd.home import make_home
from agentd.toolkit.discover import discover, load_registry

_TOOL = '''
from typing import Annotated
from pydantic import Field
from agentd.toolkit.definition import tool
from agentd.tools.fs.read import read  # what is imported is not defined here

@tool(group="own")
def {name}(word: Annotated[str, Field(description="A word.")]) -> str:
    """Say a word."""
    return word
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as installed packages, with one that offers tools by entry points."""
    site = tmp_path / "site"
    info = site / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agentd.tools]\nmodule = shouting\nsingle = whispering:whisper\nbroken = nowhere_at_all\n"
    )
    (site / "shouting.py").write_text(_TOOL.format(name="shout"))
    (site / "whispering.py").write_text(_TOOL.format(name="whisper"))
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    yield site
    for name in ("shouting", "whispering"):
        sys.modules.pop(name, None)


@pytest.mark.requirement("S0-32", "S3-03", "S3-05")
def test_every_module_of_the_package_is_walked() -> None:
    names = {made.name for made in discover().tools}
    assert {"complete_task", "read", "write", "ls", "create_task"} <= names


@pytest.mark.requirement("S0-32", "S3-29", "S3-03")
def test_a_file_in_the_homes_tools_is_a_tool(tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(_TOOL.format(name="say"))
    found = discover(tmp_path)
    assert not found.problems
    assert [made.name for made in found.tools].count("say") == 1
    assert [made.name for made in found.tools].count("read") == 1


@pytest.mark.requirement("S1-12")
def test_entry_points_offer_modules_and_single_tools(installed: Path) -> None:
    assert installed.exists()
    found = discover()
    assert {"shout", "whisper"} <= {made.name for made in found.tools}
    (problem,) = found.problems
    assert "entry point broken (nowhere_at_all)" in problem.message


@pytest.mark.requirement("S3-03")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def (", "SyntaxError"),
        ("raise RuntimeError('boom')", "boom"),
        ("import no_such_package", "no_such_package"),
        (
            "from agentd.toolkit.definition import tool\n@tool(group='x')\ndef t(a): ...",
            "has no type",
        ),
    ],
)
def test_a_broken_file_stops_nothing_else_and_is_named(
    text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "a_broken.py").write_text(text)
    (tmp_path / "b_fine.py").write_text(_TOOL.format(name="fine"))
    found = discover(tmp_path)
    assert "fine" in {made.name for made in found.tools}
    (problem,) = found.problems
    assert says in problem.message
    assert "a_broken.py" in problem.message


@pytest.mark.requirement("S4-02", "S3-07")
def test_a_registry_comes_from_a_configuration_and_keeps_going_when_a_name_is_taken(
    tmp_path: Path,
) -> None:
    make_home(tmp_path / "home")
    config = load_config(tmp_path / "home")
    (config.tools_path / "clash.py").write_text(_TOOL.format(name="ls"))
    registry, (problem,) = load_registry(config, config.tools_path)
    assert "two tools are named 'ls'" in problem.message
    assert "agentd.tools.fs.ls.ls" in problem.message
    assert len(registry.definitions()) >= 13


def test_the_package_has_a_file_for_each_tool_and_a_test_for_each_file() -> None:
    tools = Path(importlib.import_module("agentd.tools").__path__[0])
    tests = Path(__file__).parents[1] / "tools"
    for made in discover().tools:
        group, name = made.group, made.name
        assert (tools / group / f"{name}.py").is_file()
        assert (tests / group / f"test_{name}.py").is_file(), f"{name} has no test file"
