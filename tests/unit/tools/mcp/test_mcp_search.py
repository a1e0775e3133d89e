"""mcp_search."""

from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.tools.mcp.mcp_search import mcp_search
from tests.mcp_desk import servers, spec


async def test_what_fits_comes_first(tmp_path: Path) -> None:
    async with servers(tmp_path, spec("many"), spec()) as mcp:
        found = await mcp_search(mcp, "tool 417", limit=3)
        assert (found.matches[0].server, found.matches[0].tool) == ("many", "tool_417")
        assert len(found.matches) == 3
        assert "among 509 tools" in (await mcp_search(mcp, "zeppelin")).content


async def test_meaning_can_not_be_searched_yet(tmp_path: Path) -> None:
    async with servers(tmp_path) as mcp:
        with pytest.raises(ToolError, match="by meaning"):
            await mcp_search(mcp, "x", semantic_only=True)
