"""mcp.json: the shape of other clients is read, and each mistake is said in words."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agentd.connectors import editing
from agentd.connectors.specs import Servers, load_servers
from agentd.domain.errors import ConfigError, NotFound, Refused


def load(folder: Path, entries: object, root: str = "mcpServers", **environment: str) -> Servers:
    path = folder / "mcp.json"
    path.write_text(json.dumps({root: entries}))
    return load_servers(path, environment)


@pytest.mark.requirement("S4-18", "S4-23")
@pytest.mark.parametrize("root", ["mcpServers", "McpServers"])
def test_processes_and_addresses_are_read(tmp_path: Path, root: str) -> None:
    found = load(
        tmp_path,
        {
            "files": {"transport": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": 1}},
            "far": {"transport": "http", "url": "https://x.example/mcp", "headers": {"K": "v"}},
            "old": {"type": "sse", "url": "http://localhost:1/sse", "disabled": True},
        },
        root,
    )
    assert found.problems == ()
    files, far, old = found.specs
    assert (files.transport, files.command, files.args, files.env) == (
        "stdio",
        "npx",
        ("-y", "x"),
        {"A": "1"},
    )
    assert (far.transport, far.url, far.headers) == ("http", "https://x.example/mcp", {"K": "v"})
    assert (old.transport, old.enabled) == ("sse", False)


def test_variables_come_from_the_environment(tmp_path: Path) -> None:
    entries = {"a": {"url": "https://x/${P:-mcp}", "headers": {"Authorization": "Bearer ${KEY}"}}}
    (spec,) = load(tmp_path, entries, KEY="secret").specs
    assert spec.headers == {"Authorization": "Bearer secret"}
    assert spec.url == "https://x/mcp"
    assert "secret" not in spec.where


def test_where_hides_what_may_be_secret(tmp_path: Path) -> None:
    (spec,) = load(tmp_path, {"a": {"url": "https://me:pass@x.example/mcp?key=1"}}).specs
    assert spec.where == "https://x.example/mcp"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "neither command nor url"),
        ({"command": "x", "url": "https://x"}, "both command and url"),
        ({"command": "x", "transport": "http"}, "transport http does not go with command"),
        ({"url": "https://x", "transport": "pigeon"}, "'pigeon' is none of stdio, http, sse"),
        ({"url": "ftp://x"}, "must begin with http"),
        ({"command": "x", "args": "-y"}, "args: input should be a valid list"),
        ({"command": "x", "env": {"A": ["b"]}}, "env.A"),
        ({"command": "x", "connect_seconds": -1}, "connect_seconds"),
        ({"command": "x", "comand": "y"}, "comand is no key; is command meant?"),
        ({"command": "x", "env": {"A": "${GONE}"}}, "env.A names ${GONE}, which is not set"),
        ({"url": "https://x", "headers": {"A": "b\r\nc"}}, "a header holds a line break"),
        ("npx x", "it must be an object"),
    ],
)
def test_a_mistake_costs_only_its_server(tmp_path: Path, entry: Any, words: str) -> None:
    found = load(tmp_path, {"bad": entry, "good": {"command": "y"}})
    assert [spec.name for spec in found.specs] == ["good"]
    (problem,) = found.problems
    assert words in problem.message
    assert "'bad'" in problem.message


def test_keys_of_other_clients_are_passed_over(tmp_path: Path) -> None:
    entry = {"command": "x", "autoApprove": ["a"], "gallery": True}
    assert load(tmp_path, {"a": entry}).problems == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\x00"])
def test_a_file_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "mcp.json").write_text(text)
    found = load_servers(tmp_path / "mcp.json")
    assert found.specs == ()
    assert "mcp.json" in found.problems[0].message


def test_no_file_is_no_servers(tmp_path: Path) -> None:
    assert load_servers(tmp_path / "mcp.json") == Servers()


def test_editing_keeps_the_rest_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"inputs": [1], "McpServers": {"a": {"command": "x", "own": 1}}}))
    editing.add(path, "b", {"command": "y", "env": {"K": "${K}"}})
    with pytest.raises(Refused):
        editing.add(path, "b", {"command": "z"})
    editing.add(path, "b", {"command": "z"}, replace=True)
    assert json.loads(path.read_text()) == {
        "inputs": [1],
        "McpServers": {"a": {"command": "x", "own": 1}, "b": {"command": "z"}},
    }
    editing.remove(path, "a")
    assert list(json.loads(path.read_text())["McpServers"]) == ["b"]
    with pytest.raises(NotFound):
        editing.remove(path, "a")
    with pytest.raises(ConfigError):
        editing.add(path, "c", {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_crash_left_beside_it_lets_nobody_else_read_it(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    left = path.with_name(f".mcp.json.{os.getpid()}")
    left.write_text("half")
    left.chmod(0o644)
    editing.add(path, "far", {"url": "https://x.example/mcp", "headers": {"K": "v"}})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not left.exists()
