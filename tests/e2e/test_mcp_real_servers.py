"""Servers that others wrote, each driven through a task.

Those of PyPI come with the extra dev. Those of npm are looked for in the folder that the variable
MCP_TEST_NPM names: `npm install --prefix DIR @modelcontextprotocol/server-everything
@modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory`.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentd.domain.task import Task, TaskState
from tests.desk import Desk, desk
from tests.messages_turns import DONE, Call, Turn, call

pytestmark = pytest.mark.timeout(60)


def python_server(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:{Path(sys.executable).parent}")
    return found or pytest.skip(f"{name} (extra dev) is not installed")


def node_server(name: str) -> dict[str, Any]:
    folder = os.environ.get("MCP_TEST_NPM")
    if folder is None or shutil.which("node") is None:
        pytest.skip("MCP_TEST_NPM names no folder with the servers of npm, or there is no node")
    script = Path(folder) / f"node_modules/@modelcontextprotocol/{name}/dist/index.js"
    if not script.exists():
        pytest.skip(f"{name} is not in {folder}")
    return {"command": "node", "args": [str(script)]}


async def work(office: Desk, entry: dict[str, Any]) -> tuple[Task, Sequence[Any]]:
    servers = {"mcpServers": {"it": entry}}
    (office.config.home / "mcp.json").write_text(json.dumps(servers))
    task = await office.work()
    results = await office.results(task)
    assert task.state is TaskState.COMPLETED
    return task, results[1:]


async def test_time(tmp_path: Path) -> None:
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    turns = (call("mcp_list_tools"), Turn(calls=(Call("it__convert_time", asked),)), DONE)
    async with desk(tmp_path, *turns) as office:
        _, (result, _) = await work(office, {"command": python_server("mcp-server-time")})
    assert "21:00:00+09:00" in result["content"]
    assert result["data"]["time_difference"] == "+9.0h"


async def test_git(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "new.txt").write_text("x")
    turns = (call("mcp_list_tools"), call("it__git_status", repo_path=str(repository)), DONE)
    async with desk(tmp_path, *turns) as office:
        _, (result, _) = await work(office, {"command": python_server("mcp-server-git")})
    assert "new.txt" in result["content"]


async def test_everything(tmp_path: Path) -> None:
    turns = (
        call("mcp_list_tools"),
        Turn(
            calls=(
                Call("it__get-sum", {"a": 2, "b": 3}),
                Call("it__get-tiny-image"),
                Call("it__get-structured-content", {"location": "Chicago"}),
                Call("it__get-resource-links", {"count": 2}),
                Call("it__trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
            )
        ),
        DONE,
    )
    async with desk(tmp_path, *turns) as office:
        _, results = await work(office, node_server("server-everything"))
    total, image, structured, links, long, _ = results
    assert "5" in total["content"]
    assert [each["type"] for each in image["content"]].count("image") == 1
    assert set(structured["data"]) == {"temperature", "conditions", "humidity"}
    assert links["content"].count("[resource ") == 2
    assert not long["is_error"]


async def test_a_question_of_everything_waits_for_a_person(tmp_path: Path) -> None:
    asking = Turn(
        calls=(Call("mcp_exec", {"server": "it", "tool": "trigger-elicitation-request"}),)
    )
    async with desk(tmp_path, call("mcp_list_tools"), asking, asking, DONE) as office:
        servers = {"mcpServers": {"it": node_server("server-everything")}}
        (office.config.home / "mcp.json").write_text(json.dumps(servers))
        task = await office.work()
        assert task.state is TaskState.WAITING
        await office.tasks.resume(task.id, '{"name": "Ada"}')
        await office.drain()
        results = await office.results(task)
        assert (await office.tasks.get(task.id)).state is TaskState.COMPLETED
    assert "Ada" in results[2]["content"]


async def test_filesystem(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    written = str(folder / "a.txt")
    turns = (
        call("mcp_list_tools"),
        Turn(calls=(Call("it__write_file", {"path": written, "content": "hello"}),)),
        Turn(calls=(Call("it__read_text_file", {"path": written}), Call("it__read_text_file"))),
        Turn(calls=(Call("it__read_text_file", {"path": "/etc/passwd"}),)),
        DONE,
    )
    entry = node_server("server-filesystem")
    async with desk(tmp_path, *turns) as office:
        _, results = await work(office, {**entry, "args": [*entry["args"], str(folder)]})
    assert Path(written).read_text() == "hello"
    _, read, invalid, denied, _ = results
    assert "hello" in read["content"]
    assert invalid["error_type"] == "invalid_arguments"
    assert denied["error_type"] == "tool_error"


async def test_memory(tmp_path: Path) -> None:
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes engines"]}
    turns = (
        call("mcp_list_tools"),
        Turn(calls=(Call("it__create_entities", {"entities": [entity]}),)),
        call("it__search_nodes", query="engines"),
        DONE,
    )
    entry = node_server("server-memory")
    entry["env"] = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    async with desk(tmp_path, *turns) as office:
        _, (_, found, _) = await work(office, entry)
    assert "Ada" in found["content"]
