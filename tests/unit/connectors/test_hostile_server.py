"""Servers that mean harm: what they write costs neither the event loop nor the memory."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, Tool

from agentd.config import load_config
from agentd.connectors.catalog import Catalog, Listing, make_catalog
from agentd.connectors.servers import McpManager
from agentd.connectors.sieve import Sifted
from agentd.connectors.specs import Servers, ServerSpec
from agentd.connectors.stdio import has_too_many_values
from tests.mcp_desk import servers, spec, until

pytestmark = pytest.mark.timeout(20)
_WRITES = "import sys\nwhile True: sys.stdout.buffer.write({})"


async def test_what_the_model_wrote_is_not_taken_for_a_part_of_a_server(tmp_path: Path) -> None:
    """`python -m`, `npx` and others look first where they start."""
    config = load_config(tmp_path)
    config.workspace_path.mkdir(parents=True)
    mark = tmp_path / "reached"
    (config.workspace_path / "json.py").write_text(f"open({str(mark)!r}, 'w')")
    bundled = ServerSpec("own", "stdio", command="agentd-system-info")
    other = ServerSpec("other", "stdio", command=sys.executable, args=("-m", "json.tool", "-h"))
    async with McpManager.of(config, Servers((bundled, other))).open() as manager:
        await manager.get("own").ready()
        await until(lambda: manager.get("other").problem)
    assert not mark.exists()


@pytest.mark.parametrize("item", [0, {"name": "a", "inputSchema": {"type": "object"}}])
def test_of_a_million_tools_no_more_are_looked_at_than_are_bearable(item: Any) -> None:
    sifted = Sifted()
    listing = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": [item] * 1_000_000})
    sifted.sift(SessionMessage(listing))
    assert sifted.tools == 5001
    assert "5000 tools" in (sifted.too_much or "")


def test_of_an_answer_no_more_parts_are_looked_at_than_are_bearable() -> None:
    content = [{"type": "nothing"}] * 100_000
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"content": content})
    Sifted().sift(SessionMessage(answer))
    assert len(answer.result["content"]) == 1000


def test_a_listing_is_no_longer_than_is_bearable() -> None:
    sifted = Sifted()
    tool = {"name": "a", "description": "x" * (1 << 20), "inputSchema": {"type": "object"}}
    listing = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": [tool] * 100})
    sifted.sift(SessionMessage(listing))
    assert sifted.tools == 16
    assert "characters" in (sifted.too_much or "")


@pytest.mark.parametrize(
    ("line", "too_many"),
    [
        (b'{"a":"' + b"[,{" * 1_000_000 + b'"}', False),
        (b'{"a":[' + b"[]," * 1_000_000 + b"0]}", True),
        (b'["",' * 200_000, True),
        (b'"\\"' + b"," * 1_000_000 + b'"', False),
        (b"[" * 300_001 + b'"' + b'\\"' * 1_000_000, True),
        (b"1" * 100, False),
    ],
)
def test_values_of_a_line_are_counted_without_its_texts(line: bytes, too_many: bool) -> None:
    assert has_too_many_values(line) is too_many


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ('b"[" + b"[]," * 500_000 + b"[]]\\n"', "more than 300000 values"),
        ('b\'{"jsonrpc":"2.0","id":9,"result":{}}\\n\' * 100', "floods"),
    ],
    ids=["values", "messages"],
)
async def test_what_it_writes_is_bounded(tmp_path: Path, answer: str, problem: str) -> None:
    script = _WRITES.format(answer)
    bad = ServerSpec("bad", "stdio", command=sys.executable, args=("-I", "-S", "-c", script))
    async with servers(tmp_path, bad) as manager:
        with anyio.fail_after(10):
            await until(lambda: manager.get("bad").problem)
        assert problem in (manager.get("bad").problem or "")


def _catalog(**schemas: dict[str, Any]) -> Catalog:
    listed = [
        Tool.model_validate({"name": name, "inputSchema": schema})
        for name, schema in schemas.items()
    ]
    return make_catalog(ServerSpec("plain", "stdio"), "plain", Listing(listed))


def test_a_schema_in_a_dialect_that_the_models_refuse_costs_its_tool_only() -> None:
    draft = "http://json-schema.org/draft-0{}/schema#"
    catalog = _catalog(
        no_dialect={"type": "object", "$schema": []},
        third={"type": "object", "$schema": draft.format(3), "anyOf": 5},
        fourth={
            "type": "object",
            "$schema": draft.format(4),
            "properties": {"a": {"minimum": 2, "exclusiveMinimum": True}},
        },
        reference={
            "type": "object",
            "$schema": draft.format(4),
            "properties": {"a": {"$ref": 5}},
        },
        good={"type": "object", "$schema": draft.format(7)},
    )
    assert [tool.original for tool in catalog.tools] == ["good"]
    assert len(catalog.aside) == 4


async def test_half_a_character_costs_no_connection(tmp_path: Path) -> None:
    """A program of one task must not end the calls of others."""
    async with servers(tmp_path, spec()) as manager:
        server = manager.get("plain")
        answer: Any = await server.call("echo", {"text": "\ud800"})
        assert answer.content[0].text == "echo: \ufffd"
        assert server.failures == 0


async def test_tools_with_more_text_than_a_model_reads_are_not_shown(tmp_path: Path) -> None:
    """One server would end the work of all tasks, for every request has all tools."""
    text = {"type": "string", "enum": ["x" * 80_000]}
    tool = {"type": "object", "properties": {"a": text}}
    async with servers(tmp_path, spec()) as manager:
        await manager.get("plain").ready()
        manager.get("plain").catalog = _catalog(one=tool, two=tool)
        assert len(manager.shown(0)) == 2
        manager.get("plain").catalog = _catalog(one=tool, two=tool, three=tool)
        assert not manager.shown(0)
        assert len(manager.remote_tools()) == 3
