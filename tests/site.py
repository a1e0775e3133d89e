"""A web server on loopback that answers with exactly the bytes it is told to."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from agentd.sandbox.egress import Egress, Rules
from tests.loopback import Request, head, read_request

Page = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """`pages`: by path. `requests`: what was asked. One answer to a connection, then it closes."""

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    def url(self, path: str, host: str = "site.test") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        with suppress(OSError, ssl.SSLError, asyncio.CancelledError):
            request = await read_request(reader)
            if request is not None:
                self.requests.append(request)
                page = self.pages.get(request.path, answer(404, b"nothing here"))
                if isinstance(page, bytes):
                    writer.write(page)
                else:
                    await page(writer)
                await writer.drain()
        self._open.discard(writer)
        writer.close()


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A whole response; `content_type="text/html"` names a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return head(status, {"content-length": str(len(body)), **named}) + body


def redirect(to: str, status: int = 302) -> bytes:
    return answer(status, location=to)


def egress_for(*sites: Site, hosts: Sequence[str] = ("site.test",), **rules: list[str]) -> Egress:
    """Lets the ports of these sites in, on loopback, under these names."""
    private = [f"{host}:{site.port}" for site in sites for host in hosts]
    return Egress(Rules(private=private, **rules), resolve=lambda _host, _port: ["127.0.0.1"])
