"""The proxy itself, spoken to over its socket: what it passes on, and what it does not."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.abc
import pytest

from agentd.sandbox import proxy as proxy_module
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.proxy import Limits, proxy
from tests.site import Site, answer, egress_for
from tests.watching import capture

LIMITS = Limits(connections=2, head_s=0.2, connect_s=2, idle_s=0.3)


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        yield Path(directory) / "sock"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site({"/": answer(200, b"from outside")}) as made:
        yield made


async def say(path: Path, *parts: bytes) -> bytes:
    """All that comes back for these bytes."""
    with anyio.fail_after(5):
        async with await anyio.connect_unix(path) as stream:
            with suppress(anyio.BrokenResourceError):
                for part in parts:
                    await stream.send(part)
            return await rest(stream)


async def rest(stream: anyio.abc.ByteReceiveStream) -> bytes:
    got = b""
    with suppress(anyio.BrokenResourceError):
        async for chunk in stream:
            got += chunk
    return got


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", *(headers or ["Host: x"]), "", ""]).encode()


def connect(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


async def test_a_request_is_passed_on_with_the_host_of_its_url(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        asked = get(
            site.url("/?q=1"), "Host: other.test", "Proxy-Authorization: x", "Connection: x", "A: b"
        )
        assert (await say(path, asked)).endswith(b"\r\n\r\nfrom outside")
    [seen] = site.requests
    assert dict(seen.headers) == {
        "host": f"site.test:{site.port}",
        "a": "b",
        "connection": "close",
    }


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 4\r\n\r\nsent", b"Transfer-Encoding: chunked\r\n\r\n4\r\nsent\r\n0\r\n\r\n"],
)
async def test_a_body_is_passed_on(body: bytes, site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        said = await say(path, f"POST {site.url('/')} HTTP/1.1\r\nHost: x\r\n".encode() + body)
    assert said.endswith(b"from outside")
    [seen] = site.requests
    assert (seen.method, seen.body) == ("POST", b"sent")


async def test_a_second_request_on_the_connection_goes_nowhere(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        both = get(site.url("/")) + get(site.url("/inside", "other.test"))
        assert (await say(path, both)).count(b"HTTP/1.1") == 1
        assert [each.path for each in site.requests] == ["/"]


async def test_a_tunnel_carries_bytes_both_ways(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        asked = connect("site.test", site.port) + get("/")
        said = await say(path, asked)
    assert said.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200")
    assert said.endswith(b"from outside")


@pytest.mark.parametrize(
    "asked",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET https://site.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET ftp://site.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://user:pass@site.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT site.test HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT site.test:0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT http://site.test:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT site.test:80@other:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT /run/x.sock HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://site.test/ HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_request_to_a_proxy_is_refused(
    asked: bytes, site: Site, path: Path
) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        said = await say(path, asked)
    assert said.startswith(b"HTTP/1.1 400 ") or (said == b"" and len(asked) > 16_384)
    assert site.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "other.test", "0x7f.1", "[::ffff:7f00:1]"])
async def test_what_the_policy_refuses_is_told(host: str, site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        tunnel = await say(path, connect(host, site.port))
        plain = await say(path, get(site.url("/", host)))
    assert tunnel.startswith(b"HTTP/1.1 403 ")
    assert plain.startswith(b"HTTP/1.1 403 ")
    assert b"which is not public (loopback)" in plain
    assert site.connections == 0


async def test_a_name_is_resolved_once_for_a_connection(site: Site, path: Path) -> None:
    answers = iter([["169.254.169.254"], ["127.0.0.1"]])
    egress = Egress(Rules(), lambda _host, _port: next(answers))
    async with proxy(path, egress, LIMITS):
        assert (await say(path, get(site.url("/")))).startswith(b"HTTP/1.1 403 ")
    assert site.connections == 0
    assert next(answers) == ["127.0.0.1"]


async def test_nobody_listens(site: Site, path: Path) -> None:
    async with Site() as gone:
        egress = egress_for(gone)
    async with proxy(path, egress, LIMITS):
        assert (await say(path, get(gone.url("/")))).startswith(b"HTTP/1.1 502 ")


async def test_a_slow_request_is_given_up(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        assert (await say(path, b"GET http")).startswith(b"HTTP/1.1 408 ")


async def test_a_tunnel_on_which_nothing_moves_is_closed(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site), LIMITS):
        said = await say(path, connect("site.test", site.port))
    assert said == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_only_so_many_connections_at_a_time(site: Site, path: Path) -> None:
    async with (
        proxy(path, egress_for(site), Limits(connections=2)),
        await anyio.connect_unix(path) as first,
        await anyio.connect_unix(path) as second,
    ):
        tunnel = connect("site.test", site.port)
        for stream in (first, second):
            await stream.send(tunnel)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")
        assert (await say(path, get(site.url("/")))).startswith(b"HTTP/1.1 503 ")
        await first.aclose()
        with anyio.fail_after(5):
            while not (await say(path, get(site.url("/")))).endswith(b"from outside"):
                pass  # the proxy has not noticed yet


async def test_a_client_that_leaves_harms_nobody(site: Site, path: Path) -> None:
    async with proxy(path, egress_for(site)):
        for start in (b"", b"GET", get(site.url("/")), f"CONNECT site.test:{site.port} ".encode()):
            async with await anyio.connect_unix(path) as stream:
                await stream.send(start or b"x")
        assert (await say(path, get(site.url("/")))).endswith(b"from outside")


async def test_each_connection_leaves_a_line_in_the_log(
    site: Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = capture(monkeypatch, proxy_module)
    async with proxy(path, egress_for(site), LIMITS):
        await say(path, get(site.url("/")))
        await say(path, get("http://127.0.0.1/"))
    assert [(each["event"], each["host"], each["port"]) for each in lines] == [
        ("a command connected", "site.test", site.port),
        ("a command may not connect", "127.0.0.1", 80),
    ]
    assert lines[0]["received_bytes"] > len(b"from outside")
