"""mcp_info."""

from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.tools.mcp.mcp_info import mcp_info
from tests.mcp_desk import servers, spec


async def test_a_tool_is_shown_as_its_server_describes_it(tmp_path: Path) -> None:
    async with servers(tmp_path, spec("bad-schema")) as mcp:
        found = await mcp_info(mcp, "bad-schema", "dotted.name/x")
        assert found.name == "bad-schema__dotted_name_x"
        assert found.effect == "external"
        assert found.input_schema["required"] == ["text"]
        assert (await mcp_info(mcp, "bad-schema", "echo")).effect == "read"
        assert (await mcp_info(mcp, "bad-schema", "note")).effect == "idempotent"
        with pytest.raises(ToolError, match="set aside"):
            await mcp_info(mcp, "bad-schema", "bomb")
        with pytest.raises(ToolError, match="no tool 'nothing'"):
            await mcp_info(mcp, "bad-schema", "nothing")
