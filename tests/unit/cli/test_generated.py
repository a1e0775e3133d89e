"""`agentd <group> <tool>` and `agentd tools`: the same tools that the model gets."""

import json
from pathlib import Path

import anyio
import pytest

from agentd.cli.context import open_store
from agentd.cli.main import invoke, root
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.event import LargeResult
from agentd.domain.ids import SessionId, TaskId
from agentd.store.large_results import add_large
from agentd.toolkit.discover import discover
from tests.unit.cli.conftest import Agentd

_OWN = '''
from typing import Annotated
from pydantic import Field
from agentd.toolkit.definition import tool

@tool(group="greeting")
def greet(
    name: Annotated[str, Field(min_length=2, description="Whom.")],
    loud: Annotated[bool, Field(description="Shout.")] = False,
) -> str:
    """Greet somebody."""
    return f"Hello {name}" + ("!" if loud else ".")
'''


@pytest.mark.requirement("S0-01", "S0-03", "S0-27", "S0-06")
def test_every_tool_is_a_command_under_its_own_name(agentd: Agentd, home: Path) -> None:
    assert home.is_dir()
    for made in discover().tools:
        for face in made.faces():
            shown = agentd(face.group, face.name, "--help")
            assert shown.code == 0
            assert face.description.splitlines()[0][:40] in " ".join(shown.out.split())


@pytest.mark.requirement("S0-27", "S3-29", "S0-32")
def test_one_new_file_is_a_command_a_schema_and_a_tool(agentd: Agentd, home: Path) -> None:
    (home / "tools" / "greet.py").write_text(_OWN)
    assert agentd("greeting", "greet", "Ann", "--loud").out == "Hello Ann!\n"
    assert agentd("tools", "call", "greet", '{"name": "Bob"}').out == "Hello Bob.\n"
    assert agentd("tools", "schema", "greet").json["input_schema"]["required"] == ["name"]
    assert "greeting" in agentd("--help").out
    names = [each["name"] for each in agentd("tools", "list", "--json").json]
    assert "greet" in names


@pytest.mark.requirement("S0-31", "S0-39")
def test_the_command_and_the_model_meet_the_same_validation(agentd: Agentd, home: Path) -> None:
    (home / "tools" / "greet.py").write_text(_OWN)
    by_command = agentd("greeting", "greet", "A")
    by_json = agentd("tools", "call", "greet", '{"name": "A"}')
    assert by_command.code == by_json.code == 2
    assert by_command.err == by_json.err
    assert "at least 2 characters" in by_command.err


def test_results_as_text_and_as_json(agentd: Agentd, home: Path) -> None:
    (home / "workspace" / "a.txt").write_text("hello\n")
    assert agentd("fs", "read", "a.txt").out == "0\thello\n"
    shown = agentd("fs", "ls", ".", "--json").json
    assert (shown["ok"], shown["data"]["entries"][0]["path"]) == (True, "a.txt")
    picture = b"GIF89a\x05\0\x06\0\0\0\0;"
    (home / "workspace" / "p.gif").write_bytes(picture)
    told = f"p.gif is a picture: image/gif, 5 x 6 pixels, {len(picture)} bytes."
    assert agentd("fs", "read", "p.gif").out == f"{told}\n(image: not shown here)\n"
    failed = agentd("fs", "read", "b.txt")
    assert (failed.code, failed.out) == (1, "")
    assert "ls . shows what is there" in failed.err
    assert agentd("fs", "read", "b.txt", "--json").json["error_type"] == "not_found"


def test_a_person_gets_a_long_result_whole(agentd: Agentd, home: Path) -> None:
    (home / "workspace" / "long.txt").write_text("x" * 45_000)
    assert agentd("fs", "read", "long.txt").out.count("x") >= 45_000


async def _store_a_result(home: Path) -> None:
    large = LargeResult("lr_1", SessionId("s"), TaskId("t"), "c", "web_fetch", True, "abcdefg", 3)
    async with open_store(load_config(home)) as store, store.transaction() as conn:
        await add_large(conn, large, SystemClock().now())


def test_the_pages_of_a_stored_result_can_be_read(agentd: Agentd, home: Path) -> None:
    anyio.run(_store_a_result, home)
    first = agentd("context", "read-large-result", "lr_1")
    assert (first.code, first.out) == (0, "abc\n")
    assert 'read_large_result(id="lr_1", page=2)' in first.err
    last = agentd("context", "read-large-result", "lr_1", "--page", "3")
    assert (last.out, last.err) == ("g\n", "")
    assert agentd("context", "read-large-result", "lr_1", "--page", "4").code == 1
    shown = agentd("context", "read-large-result", "lr_1", "--page", "2", "--json").json["data"]
    assert (shown["content"], shown["pages"], shown["left_chars"]) == ("def", 3, 1)


@pytest.mark.usefixtures("home")
def test_a_hand_written_command_wins_and_the_tool_keeps_its_long_name(agentd: Agentd) -> None:
    shown = agentd("task", "--help").out
    assert "list-tasks" in shown
    assert agentd("task", "create", "From a tool.", "--priority", "low").code == 0
    assert "From a tool." in agentd("task", "list-tasks").out
    assert agentd("task", "list", "--json").json[0]["enqueued_by"] == "cli"


@pytest.mark.usefixtures("home")
def test_a_tool_that_needs_a_run_says_so(agentd: Agentd) -> None:
    done = agentd("task", "complete", "Done.")
    assert done.code == 1
    assert "only inside a run" in done.err


def test_a_broken_tool_is_named_and_the_others_work(agentd: Agentd, home: Path) -> None:
    (home / "tools" / "broken.py").write_text("def (")
    done = agentd("fs", "ls", ".")
    assert done.code == 0
    assert "broken.py" in done.err


def test_without_a_home_help_still_shows_the_groups(
    agentd: Agentd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "nowhere"))
    done = agentd("--help")
    assert done.code == 0
    assert "fs" in done.out
    missing = agentd("fs", "ls", ".")
    assert missing.code == 2
    assert "init" in missing.err


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("style", ["anthropic", "openai", "python"])
def test_schemas_for_every_reader(style: str, agentd: Agentd) -> None:
    done = agentd("tools", "schema", "--format", style)
    assert done.code == 0
    if style == "python":
        compile(done.out, "stubs", "exec")
    else:
        assert len(done.json) >= 13


def test_every_hand_written_command_has_a_help_line() -> None:
    from agentd.cli.main import _COMMANDS, _HELP  # noqa: PLC0415 - what stands side by side there

    assert set(_COMMANDS) == set(_HELP)
    for name in _COMMANDS:
        assert root.get_command(None, name) is not None  # type: ignore[arg-type]


_BROKEN = '''
from typing import Annotated
from pydantic import Field
from agentd.config import Config
from agentd.toolkit.definition import tool

@tool(group="text")
def divide(config: Config, by: Annotated[int, Field(description="By.")]) -> float:
    """Divide."""
    key = config.models.anthropic.api_key.get_secret_value()
    return len(key) / by
'''


def test_a_tool_that_breaks_tells_no_secret_and_leaves_the_output_clean(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "very-secret-1")
    (home / "tools" / "divide.py").write_text(_BROKEN)
    capsys.readouterr()
    assert invoke(["text", "divide", "0", "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error_type"] == "internal_error"
    assert "divide.py" in shown.err  # where it broke
    assert "very-secret-1" not in shown.out + shown.err


def test_what_ends_a_task_is_not_listed_for_people(agentd: Agentd, home: Path) -> None:
    assert home.is_dir()
    assert "create" in agentd("task", "--help").out
    assert "\n  complete" not in agentd("task", "--help").out
    assert "only inside a run" in agentd("task", "complete", "done").err


def test_an_example_in_a_description_keeps_its_lines(agentd: Agentd, home: Path) -> None:
    assert home.is_dir()
    shown = agentd("fs", "apply-patch", "--help").out
    assert "\n  *** Begin Patch\n  *** Add File: new.txt\n  +every line" in shown
    assert "update, move and delete them. All of it,\n  or nothing." in shown
