"""mcp_list_tools."""

from pathlib import Path

import pytest

from agentd.connectors.specs import ServerSpec
from agentd.domain.errors import NotFound
from agentd.tools.mcp.mcp_list_tools import mcp_list_tools
from tests.mcp_desk import servers, spec


async def test_servers_are_shown_with_their_tools_and_troubles(tmp_path: Path) -> None:
    missing = ServerSpec("missing", "stdio", command="no-such-program")
    async with servers(tmp_path, missing, spec("bad-schema"), breaker_threshold=1) as mcp:
        found = await mcp_list_tools(mcp)
    assert "missing (resting: the program 'no-such-program' is not there)" in found.content
    assert "  echo: Does echo." in found.content
    assert "(can not be used) no_object" in found.content
    assert {line.server: line.state for line in found.servers} == {
        "missing": "resting",
        "bad-schema": "ready",
    }


async def test_one_server_alone_can_be_asked_for(tmp_path: Path) -> None:
    async with servers(tmp_path, spec(), spec(name="other")) as mcp:
        found = await mcp_list_tools(mcp, "other")
        assert {line.server for line in found.tools} == {"other"}
        with pytest.raises(NotFound, match="nobody"):
            await mcp_list_tools(mcp, "nobody")


async def test_without_servers_that_is_said(tmp_path: Path) -> None:
    async with servers(tmp_path) as mcp:
        assert (await mcp_list_tools(mcp)).content == "There are no MCP servers."
