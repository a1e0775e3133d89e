"""exec with what its owner grants: network through the policy, and commands of the host."""

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.confined import needs_sandbox
from tests.site import Site, answer
from tests.unit.tools.runtime.test_exec import toolbox

pytestmark = needs_sandbox
_GET = "import urllib.request as r; print(r.urlopen('http://{host}/', timeout=5).read().decode())"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site({"/": answer(200, b"from outside")}) as made:
        yield made


def _python(code: str) -> str:
    """For a Python that the sandbox shows: the system's, or the one that the network brings."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    return f'unset no_proxy NO_PROXY; {python} -c "{code}"'  # this test serves on the loopback


@pytest.mark.requirement("S2-20")
async def test_granted_network_leads_where_the_policy_lets_it(tmp_path: Path, site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    settings = {"commands.network": "filtered", "egress.private": [host]}
    async with toolbox(tmp_path, **settings) as (_, ask):
        allowed = await ask("exec", command=_python(_GET.format(host=host)))
        assert allowed.content == "from outside"
        other = await ask("exec", command=_python(_GET.format(host="127.0.0.1:1")))
        assert "403" in other.content
        direct = await ask(
            "exec", command=f"unset ${{!http*}}; exec 3<>/dev/tcp/127.0.0.1/{site.port}"
        )
        assert direct.data["exit_code"] != 0
    assert not list((tmp_path / "home/run").glob("net-*"))


async def test_without_the_grant_there_is_no_network(tmp_path: Path, site: Site) -> None:
    async with toolbox(tmp_path, **{"egress.private": [f"127.0.0.1:{site.port}"]}) as (_, ask):
        refused = await ask("exec", command=f"exec 3<>/dev/tcp/127.0.0.1/{site.port}")
        assert refused.data["exit_code"] != 0


@pytest.mark.requirement("S2-24")
async def test_a_configured_command_runs_outside_and_only_that_one(tmp_path: Path) -> None:
    (tmp_path / "host.txt").write_text("of the host")
    given = [{"argv": ["show", "host"], "run": ["cat", str(tmp_path / "host.txt")]}]
    async with toolbox(tmp_path, host_commands=given) as (_, ask):
        shown = await ask("exec", command="show host")
        assert shown.content == "of the host"
        assert (await ask("bash", command="show  'host'")).content == "of the host"
        for command in ("show host; id", "show host extra", "show", f"cat {tmp_path}/host.txt"):
            assert "of the host" not in (await ask("bash", command=command)).content
