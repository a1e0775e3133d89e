"""mcp_exec."""

from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.tools.mcp.mcp_exec import mcp_exec
from tests.mcp_desk import servers, spec


async def test_a_tool_is_called(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        found = await mcp_exec(mcp, "plain", "echo", {"text": "hi"})
    assert (found.ok, found.content) == (True, "echo: hi")


async def test_a_wrong_input_reaches_no_server(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        with pytest.raises(ToolError) as wrong:
            await mcp_exec(mcp, "plain", "echo")
    assert wrong.value.error_type == "input_error"
    assert "mcp_info plain echo" in (wrong.value.next_action_hint or "")


async def test_a_read_is_made_again_when_the_server_went_away(tmp_path: Path) -> None:
    """Once; what changes something never is."""
    async with servers(tmp_path, spec()) as mcp:
        found = await mcp_exec(mcp, "plain", "flaky", {"text": str(tmp_path / "once")})
        assert found.content == "again"
        with pytest.raises(ToolError) as lost:
            await mcp_exec(mcp, "plain", "die", {"text": ""})
        assert lost.value.error_type == "server_lost"


async def test_outside_a_run_nobody_is_asked(tmp_path: Path) -> None:
    async with servers(tmp_path, spec("ask")) as mcp:
        found = await mcp_exec(mcp, "ask", "order", {"text": "apples"})
    assert '"cancel"' in str(found.content)
