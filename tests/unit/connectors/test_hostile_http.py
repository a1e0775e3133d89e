"""Servers on the network that mean harm: what they answer is bounded, and leads nowhere inside."""

import gzip
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from agentd.connectors.failures import ServerFailed
from agentd.connectors.login import listening
from agentd.connectors.network import Way
from agentd.connectors.server import State
from agentd.connectors.specs import ServerSpec
from agentd.sandbox.egress import Egress, Rules
from tests.mcp_desk import servers, state

_ADDRESSES = {
    "mcp.example": "93.184.216.34",
    "login.example": "93.184.216.35",
    "inside.example": "169.254.169.254",
    "office.example": "10.0.0.5",
}


def way(url: str) -> Way:
    def resolve(host: str, port: int) -> Sequence[str]:
        del port
        return [_ADDRESSES.get(host, host)]

    return Way(url, Egress(Rules(), resolve))


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://inside.example/.well-known/oauth-authorization-server",
        "http://127.0.0.1:8080/token",
        "https://[::1]/",
        "https://office.example/",
    ],
)
async def test_a_public_server_sends_us_to_public_addresses_only(target: str) -> None:
    with pytest.raises(ServerFailed, match="it sends us to"):
        await way("https://mcp.example/mcp").check(httpx2.URL(target))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://mcp.example/mcp", "https://mcp.example/token"),
        ("https://mcp.example/mcp", "https://login.example/token"),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token"),
        ("https://office.example/mcp", "http://10.0.0.6/token"),
    ],
)
async def test_others_may_name_who_logs_in(url: str, target: str) -> None:
    await way(url).check(httpx2.URL(target))


@contextmanager
def answering(body: bytes, **headers: str) -> Generator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return  # it has heard enough

        do_GET = do_POST  # noqa: N815 - the name that the standard library asks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("body", "headers", "problem"),
    [
        (gzip.compress(b" " * (1 << 20)), {"content_encoding": "gzip"}, "answers in gzip"),
        (b" " * (33 << 20), {}, "more than 33554432 bytes"),
        (b"[]," * (1 << 20), {}, "more than 1000000 values"),
    ],
    ids=["packed", "long", "values"],
)
async def test_an_answer_is_bounded(
    tmp_path: Path, body: bytes, headers: dict[str, str], problem: str
) -> None:
    with answering(body, **headers) as url:
        far = ServerSpec("far", "http", url=url)
        async with servers(tmp_path, far, breaker_threshold=1) as manager:
            await state(manager.get("far"), State.RESTING)
            assert problem in (manager.get("far").problem or "")


async def test_a_connection_without_a_word_does_not_end_a_login() -> None:
    """Browsers open some in advance."""
    async with listening(lambda _: None) as person:
        port = urlsplit(person.redirect).port
        assert port is not None
        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
        async with await anyio.connect_tcp("127.0.0.1", port) as browser:
            await browser.send(b"GET /callback?code=c&state=s HTTP/1.1\r\n\r\n")
            assert b"logged in" in await browser.receive()
        with anyio.fail_after(5):
            assert (await person.wait()).code == "c"
