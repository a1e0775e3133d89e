"""How HTTP connects, and what went wrong with a connection, in words."""

import ssl
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import anyio
import httpcore2
import httpx2

from agentd.domain.errors import ToolError
from agentd.sandbox.egress import Egress


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were checked; TLS is still for the name of the host."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._plain: Any = httpcore2.AnyIOBackend()  # its types are those of a missing anyio

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is the library's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        async def to(address: str) -> httpcore2.AsyncNetworkStream:
            try:
                stream: httpcore2.AsyncNetworkStream = await self._plain.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                raise OSError(str(error)) from error
            return stream

        return await self._egress.connect(host, port, to)


@contextmanager
def explained(url: str) -> Generator[None]:
    """What the library raises, as a ToolError that says what to make of it."""
    try:
        yield
    except httpcore2.ConnectError as error:
        if (why := _tls_problem(error)) is not None:
            raise ToolError("tls_error", f"{url}: {why}") from error
        raise ToolError("connection_failed", f"{url}: {error or 'no connection'}") from error
    except (httpcore2.NetworkError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise ToolError("connection_failed", f"{url}: the connection broke: {error}") from error
    except (httpcore2.ProtocolError, httpx2.DecodingError) as error:
        raise ToolError("http_error", f"{url} answers with broken HTTP: {error}") from error


def _tls_problem(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"no TLS with it: {error.reason or error}"
        error = error.__cause__ or error.__context__
    return None
