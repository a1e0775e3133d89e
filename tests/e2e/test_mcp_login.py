"""OAuth with an MCP server: once with a person, then without; the tokens are nobody else's."""

import json
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.processes import Home, new_home

pytestmark = pytest.mark.timeout(60)  # several processes one after another
_SERVER = Path(__file__).parents[1] / "oauth_server.py"


# As some do, it opens a connection that it does not use, before it asks for anything.
_BROWSER = """
import socket, sys, urllib.request
from urllib.parse import parse_qs, urlsplit
back = urlsplit(parse_qs(urlsplit(sys.argv[1]).query)["redirect_uri"][0])
socket.create_connection((back.hostname, back.port)).close()
urllib.request.urlopen(sys.argv[1])
"""


@asynccontextmanager
async def guarded(life_s: int) -> AsyncIterator[str]:
    """The address of a server whose tokens live for so long."""
    async with await anyio.open_process([sys.executable, str(_SERVER), str(life_s)]) as process:
        assert process.stdout is not None
        with anyio.fail_after(15):
            said = await process.stdout.receive()
        try:
            yield json.loads(said)["base"]
        finally:
            process.kill()


async def log_in(home: Home) -> None:
    """As a person does who has no browser on this machine."""
    async with await anyio.open_process(
        home.command("mcp", "login", "guarded", "--paste"), env=home.environment
    ) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        said = ""
        with anyio.fail_after(15):
            while "Paste" not in said:
                said += (await process.stderr.receive()).decode()
        page = next(line for line in said.splitlines() if line.startswith("http"))
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(page)).headers["location"]
        await process.stdin.send(f"{back}\n".encode())
        with anyio.fail_after(15):
            assert await process.wait() == 0


async def counts(base: str) -> dict[str, int]:
    async with httpx2.AsyncClient() as http:
        found: dict[str, int] = (await http.get(f"{base}/counts")).json()
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path)


async def test_a_login_is_kept_and_refreshed_without_anybody(home: Home) -> None:
    async with guarded(life_s=1) as base, httpx2.AsyncClient() as http:
        assert (await home.run("mcp", "add", "guarded", "--url", f"{base}/mcp")).code == 0
        asked = await home.run("mcp", "call", "guarded", "whoami")
        assert asked.code == 1
        assert "agentd mcp login guarded" in asked.err
        await log_in(home)
        (kept,) = (home.path / "mcp-tokens").iterdir()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        before = await counts(base)
        called = await home.run("mcp", "call", "guarded", "whoami")
        assert (called.code, called.out.strip()) == (0, "somebody"), called.err
        after = await counts(base)
        assert after["refresh_token"] > before.get("refresh_token", 0)
        assert after["authorization_code"] == 1
        failed = await home.run("mcp", "login", "guarded", "--paste")
        assert (failed.code, kept.exists()) == (1, True), "a login that fails costs the old one"
        await http.post(f"{base}/revoke?all")
        asked = await home.run("mcp", "call", "guarded", "whoami")
        assert (asked.code, asked.out) == (1, "")
        assert "agentd mcp login guarded" in asked.err


async def test_a_browser_brings_the_code_back(tmp_path: Path) -> None:
    opener = tmp_path / "open.py"
    opener.write_text(_BROWSER)
    home = new_home(tmp_path)
    environment = {**home.environment, "BROWSER": f"{sys.executable} {opener} %s"}
    async with guarded(life_s=3600) as base:
        await home.run("mcp", "add", "guarded", "--url", f"{base}/mcp")
        with anyio.fail_after(15):
            done = await anyio.run_process(
                home.command("mcp", "login", "guarded"), env=environment, check=False
            )
        assert done.returncode == 0, done.stderr
        assert (await home.run("mcp", "call", "guarded", "whoami")).out.strip() == "somebody"
        async with httpx2.AsyncClient() as http:
            await http.post(f"{base}/revoke")
        again = await home.run("mcp", "call", "guarded", "whoami")
        assert again.out.strip() == "somebody", "a token that was refused is replaced"
        assert (await home.run("mcp", "logout", "guarded")).code == 0
        assert not list((home.path / "mcp-tokens").iterdir())
