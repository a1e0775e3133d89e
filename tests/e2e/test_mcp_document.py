"""What the guide to MCP shows works as it stands there."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from agentd.connectors.specs import parse
from tests.e2e.test_documents import blocks, commands, run_all
from tests.processes import Home, new_home

_DOCUMENT = "docs/mcp.md"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    beside = Path(sys.executable).parent
    if not (beside / "mcp-server-time").exists() and shutil.which("mcp-server-time") is None:
        pytest.skip("mcp-server-time (extra dev) is not installed")
    monkeypatch.chdir(tmp_path)
    return new_home(tmp_path)


@pytest.mark.timeout(90)
async def test_the_commands_of_the_guide_to_mcp(home: Home, tmp_path: Path) -> None:
    await run_all(home, commands(_DOCUMENT), tmp_path)


def test_the_servers_of_the_guide_to_mcp() -> None:
    for block in blocks(_DOCUMENT, "json"):
        for name, entry in json.loads(block)["mcpServers"].items():
            assert parse(name, entry, {"FAR_KEY": "x"}).name == name


async def test_a_server_that_is_left_out_is_told_of_only_where_all_are_meant(home: Home) -> None:
    unset = {"url": "https://x.example/mcp", "headers": {"A": "${NOT_SET_ANYWHERE}"}}
    (home.path / "mcp.json").write_text(json.dumps({"mcpServers": {"far": unset}}))
    everything = await home.run("mcp", "ping")
    assert everything.code == 1
    assert "${NOT_SET_ANYWHERE}, which is not set" in everything.err
    await home.run("mcp", "add", "clock", "--", "mcp-server-time")
    one = await home.run("mcp", "tools", "clock")
    assert (one.code, one.err) == (0, "")
