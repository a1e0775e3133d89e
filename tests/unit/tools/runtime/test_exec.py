"""exec and bash, as the model calls them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentd.app_tools import Toolbox, call_tool, make_toolbox
from agentd.config import load_config
from agentd.home import make_home
from agentd.store.store import Store
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.result import ToolResult
from agentd.toolkit.schema import input_schema
from tests.confined import needs_sandbox
from tests.desk import desk
from tests.messages_turns import call

pytestmark = needs_sandbox
Ask = Callable[..., Any]


@asynccontextmanager
async def toolbox(path: Path, **settings: Any) -> AsyncIterator[tuple[Toolbox, Ask]]:
    """The tools of a home, and how a person calls one."""
    make_home(path / "home")
    config = load_config(path / "home", settings)
    async with Store(config.database_path) as store:
        tools = make_toolbox(config, store)

        async def ask(name: str, **arguments: Any) -> ToolResult:
            found = tools.registry.find(name)
            assert isinstance(found, Tool)
            return await call_tool(tools, store, found, arguments)

        yield tools, ask


@pytest.mark.requirement("S2-20")
async def test_exec_takes_a_folder_variables_and_input(tmp_path: Path) -> None:
    async with toolbox(tmp_path) as (_, ask):
        (tmp_path / "home" / "workspace" / "sub").mkdir()
        done = await ask(
            "exec", command='pwd; echo "$A"; cat', workdir="sub", env={"A": "b c"}, input="given"
        )
        assert done.content == f"{tmp_path}/home/workspace/sub\nb c\ngiven"
        assert done.data["exit_code"] == 0
        missing = await ask("exec", command="true", workdir="nowhere")
        assert missing.error_type == "not_found"
        outside = await ask("exec", command="true", workdir=str(tmp_path))
        assert outside.error_type == "outside_workspace"
        wrong = await ask("exec", command="true", env={"A=B": "1"})
        assert wrong.error_type == "invalid_arguments"
        background = await ask("exec", command="true", background=True)
        assert background.error_type == "unavailable"


@pytest.mark.requirement("S2-21", "C7")
async def test_exec_has_half_an_hour_and_at_least_ten_seconds(tmp_path: Path) -> None:
    async with toolbox(tmp_path) as (tools, ask):
        found = tools.registry.find("exec")
        assert isinstance(found, Tool)
        timeout = input_schema(found)["properties"]["timeout"]
        assert (timeout["default"], timeout["minimum"]) == (1800, 10)
        assert found.effect is Effect.RECONCILABLE
        refused = await ask("exec", command="true", timeout=9)
        assert refused.error_type == "invalid_arguments"


@pytest.mark.requirement("S2-22", "C7")
async def test_exec_keeps_100_000_characters_and_counts_the_rest(tmp_path: Path) -> None:
    async with toolbox(tmp_path) as (_, ask):
        done = await ask("exec", command="head -c 250000 /dev/zero | tr '\\0' x; echo end")
        assert done.data["cut_chars"] == 150_004
        assert 100_000 < len(done.content) < 100_100
        assert done.content.endswith("xend")
        assert "[… 150004 characters are missing here …]" in done.content


@pytest.mark.requirement("S4-06", "C7")
async def test_bash_is_exec_with_markers_and_thirty_seconds(tmp_path: Path) -> None:
    async with toolbox(tmp_path) as (tools, ask):
        bash = tools.registry.find("bash")
        assert isinstance(bash, Tool)
        assert list(input_schema(bash)["properties"]) == ["command"]
        assert (bash.alias_of, bash.fixed["timeout"], bash.fixed["background"]) == (
            "exec",
            30,
            False,
        )
        assert (await ask("bash", command="echo out; echo err >&2; exit 7")).content == (
            "out\nerr\n[exit code 7]"
        )
        assert (await ask("bash", command="true")).content == "(no output)"
        assert (await ask("bash", command="[[ a == a ]] && echo bash")).content == "bash"


async def test_a_timeout_and_a_limit_are_told_in_the_text(tmp_path: Path) -> None:
    async with toolbox(tmp_path, **{"commands.processes": 8}) as (tools, ask):
        bash = tools.registry.find("bash")
        assert isinstance(bash, Tool)
        values = {**bash.fixed, "timeout": 0.2}
        quick = type(bash)(**{**_fields(bash), "fixed": values})
        result = await _call(tools, quick, tmp_path, command="echo begun; sleep 60")
        assert result.content == "begun\n[timed out after 0.2s]"
        bomb = await ask("bash", command="for n in $(seq 20); do sleep 9 & done; wait")
        assert "more than 8 processes and threads (commands.processes)" in bomb.content
        assert bomb.data["exit_code"] is None


async def test_what_would_steer_a_terminal_is_taken_out(tmp_path: Path) -> None:
    async with toolbox(tmp_path) as (_, ask):
        text = r"printf '\033[31mred\033[0m \033]0;title\007a\bb 10%%\r20%%\r\nend\033c\302\233'"
        assert (await ask("bash", command=text)).content == "20%\nend"


async def test_no_key_of_the_daemon_is_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-1")
    monkeypatch.setenv("AGENTD_LOG__LEVEL", "debug")
    monkeypatch.setenv("EDITOR", "canary-2")
    async with toolbox(tmp_path, **{"commands.environment": ["EDITOR"]}) as (_, ask):
        seen = (await ask("bash", command="env; cat /proc/*/environ | tr '\\0' '\\n'")).content
        assert "canary-1" not in seen
        assert "AGENTD" not in seen
        assert "EDITOR=canary-2" in seen


async def test_in_a_run_its_changes_are_there_for_the_next_tool(tmp_path: Path) -> None:
    turns = [
        call("exec", command="echo made > a; exit 3"),
        call("read", path="a"),
        call("complete_task", summary="Done."),
    ]
    async with desk(tmp_path, *turns) as at:
        results = await at.results(await at.work())
        assert [each["content"] for each in results[:2]] == ["[exit code 3]", "0\tmade"]
        assert not results[0]["is_error"]
        assert results[0]["data"]["exit_code"] == 3


async def test_switched_off_it_runs_unconfined(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("seen")
    async with toolbox(tmp_path, sandbox="off") as (_, ask):
        assert (await ask("bash", command=f"cat {tmp_path}/outside")).content == "seen"
    async with toolbox(tmp_path) as (_, ask):
        assert "No such file" in (await ask("bash", command=f"cat {tmp_path}/outside")).content


def _fields(tool: Tool) -> dict[str, Any]:
    return {name: getattr(tool, name) for name in Tool.__dataclass_fields__}


async def _call(tools: Toolbox, tool: Tool, path: Path, **arguments: Any) -> ToolResult:
    async with Store(path / "home" / "other.duckdb") as store:
        return await call_tool(tools, store, tool, arguments)
