"""HTTP to the outside: what tools ask, and what they get.

No proxies, cookies or passwords from the environment, no second resolution, no redirect that is
followed unseen, no body beyond its cap, and one time limit for all of it. How: hops.py.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.sandbox.egress import Egress

if TYPE_CHECKING:
    from agentd.sandbox.hops import Hops

_REDIRECTS_MOST = 10
_BODY_BYTES = 2 * 1024 * 1024
_START_CHARS = 500
_GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `timeout_s`: for all of it, redirects and body included.

    `most_bytes`: of the body as it is after decompression. `cut`: a longer body is cut there, else
    it is an error. `redirects`: how many are followed.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    timeout_s: float = 15.0
    most_bytes: int = _BODY_BYTES
    cut: bool = False
    redirects: int = _REDIRECTS_MOST


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `url`: after redirects. `headers`: names in small letters.

    `cut`: the body went on after what is here.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def content_type(self) -> str:
        """Without its parameters, in small letters; empty when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def checked(self) -> "Answer":
        """Itself, when it is a success. Raises ToolError with the status and the body's start."""
        if 200 <= self.status < 300:
            return self
        start = " ".join(self.body[: _START_CHARS * 4].decode(errors="replace").split())
        says = f": {start[:_START_CHARS]}" if start else ""
        kind = "not_found" if self.status in _GONE else "http_error"
        raise ToolError(kind, f"{self.url} answered with status {self.status}{says}")


class Http(Capability):
    """The only way by which tools speak HTTP. `make_tls`: asked once, when it is first needed."""

    def __init__(
        self, egress: Egress, make_tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        self._egress = egress
        self._make_tls = make_tls

    async def send(self, request: Request) -> Answer:
        """Whatever the server answers, of any status. Raises ToolError."""
        try:
            with anyio.fail_after(request.timeout_s):
                return await self._hops.follow(request)
        except TimeoutError as error:
            raise ToolError(
                "timeout", f"{request.url} took longer than {request.timeout_s:g} s"
            ) from error

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer, if it is a success. Raises ToolError."""
        return (await self.send(Request(url, headers=headers or {}))).checked()

    @cached_property
    def _hops(self) -> "Hops":
        from agentd.sandbox.hops import Hops  # noqa: PLC0415 - 80 ms that no other command needs

        return Hops(self._egress, self._make_tls)
