"""Requests one after the other, each to a checked address, until an answer is no redirect."""

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import httpcore2
import httpx2

from agentd.domain.errors import ToolError
from agentd.sandbox.connections import CheckedBackend, explained
from agentd.sandbox.egress import Egress
from agentd.sandbox.http import Answer, Request

_CODINGS = ("gzip", "deflate")
_URL_LONGEST = 8192
_PASSED_ON = frozenset({"accept", "accept-language", "user-agent"})
_BODY_HEADERS = frozenset({"content-type", "content-length", "content-encoding"})
_REDIRECTS = (301, 302, 303, 307, 308)
_SEE_OTHER = 303
_TURN_TO_GET = (301, 302)


class Hops:
    """How `Http` does it."""

    def __init__(self, egress: Egress, make_tls: Callable[[], ssl.SSLContext] | None) -> None:
        self._backend = CheckedBackend(egress)
        self._make_tls = make_tls or httpcore2.default_ssl_context

    async def follow(self, request: Request) -> Answer:
        url = parse_url(request.url)
        for _ in range(request.redirects + 1):
            answer = await self._hop(url, request)
            target = answer.headers.get("location")
            if answer.status not in _REDIRECTS or target is None:
                return answer
            url, request = _redirected(url, target, answer.status, request)
        raise ToolError(
            "too_many_redirects", f"{request.url} led through more than {request.redirects} others"
        )

    async def _hop(self, url: httpx2.URL, request: Request) -> Answer:
        """One request on a connection of its own: none is kept for another host to use."""
        asked = httpx2.Request(
            request.method, url, headers=_headers(request.headers), content=request.body or None
        )
        tls = self._tls if url.scheme == "https" else None
        with explained(str(url)):
            async with httpcore2.AsyncConnectionPool(
                ssl_context=tls, network_backend=self._backend, max_connections=1
            ) as pool:
                return await _ask(pool, asked, request)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._make_tls()


def parse_url(text: str) -> httpx2.URL:
    """An absolute http or https URL without a user name. Raises ToolError."""
    if len(text) > _URL_LONGEST:
        raise ToolError("invalid_url", f"a URL of more than {_URL_LONGEST} characters")
    try:
        url = httpx2.URL(text.strip())
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolError("invalid_url", f"{text[:200]!r} is no URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(
            "invalid_url",
            f"{text[:200]!r} can not be fetched",
            next_action_hint="Give an absolute URL that begins with https:// or http://.",
        )
    if url.userinfo:
        raise ToolError("invalid_url", f"a URL must not hold a user name or password: {url.host}")
    return url.copy_with(fragment=None)


def _redirected(
    url: httpx2.URL, location: str, status: int, request: Request
) -> tuple[httpx2.URL, Request]:
    try:
        target = parse_url(str(url.join(location)))
    except httpx2.InvalidURL as error:
        raise ToolError("invalid_url", f"{url} redirects to what is no URL: {error}") from error
    if url.scheme == "https" and target.scheme == "http":
        raise ToolError(
            "redirect_refused",
            f"{url} redirects from https to {target}, where anybody on the way can change it",
            next_action_hint="Fetch that URL itself if this does not matter.",
        )
    method, body, headers = request.method, request.body, request.headers
    if status == _SEE_OTHER or (status in _TURN_TO_GET and method == "POST"):
        method = method if method == "HEAD" else "GET"
        body, headers = b"", _without(headers, _BODY_HEADERS)
    if _origin(target) != _origin(url):
        if body:
            raise ToolError("redirect_refused", f"{url} passes what was sent on to {target.host}")
        headers = {name: each for name, each in headers.items() if name.lower() in _PASSED_ON}
    return target, replace(request, method=method, body=body, headers=headers)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    default = {"http": 80, "https": 443}[url.scheme]
    return url.scheme, url.raw_host, url.port or default


def _without(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: each for name, each in headers.items() if name.lower() not in names}


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    basic = {"user-agent": "agentd", "accept": "*/*", "accept-encoding": ", ".join(_CODINGS)}
    own = _without(given, frozenset({"host", "accept-encoding", "connection"}))
    return {**basic, **{name.lower(): each for name, each in own.items()}}


async def _ask(
    pool: httpcore2.AsyncConnectionPool, asked: httpx2.Request, request: Request
) -> Answer:
    raw = httpcore2.Request(
        asked.method,
        httpcore2.URL(
            scheme=asked.url.raw_scheme,
            host=asked.url.raw_host,
            port=asked.url.port,
            target=asked.url.raw_path,
        ),
        headers=asked.headers.raw,
        content=request.body,
    )
    got = await pool.handle_async_request(raw)
    try:
        assert isinstance(got.stream, AsyncIterable)
        answer = httpx2.Response(got.status, headers=got.headers, stream=_Body(got.stream))
        _check_coding(answer.headers.get_list("content-encoding", split_commas=True), asked.url)
        body, cut = await _read(answer, request)
    finally:
        await got.aclose()
    if cut and not request.cut:
        raise ToolError("too_large", f"{asked.url} is larger than {request.most_bytes} bytes")
    headers = dict(answer.headers.items())
    return Answer(str(asked.url), got.status, headers, body, cut)


class _Body(httpx2.AsyncByteStream):
    """The body as it comes; httpx2 decompresses it, in bounded pieces."""

    def __init__(self, parts: AsyncIterable[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part


def _check_coding(codings: Sequence[str], url: httpx2.URL) -> None:
    """One at the most: each multiplies what a small body can grow to, and the work it makes."""
    named = [each for each in map(str.lower, codings) if each not in ("", "identity")]
    if len(named) > 1 or not set(named) <= set(_CODINGS):
        raise ToolError("unsupported_type", f"{url} is compressed by {', '.join(named)}")


async def _read(answer: httpx2.Response, request: Request) -> tuple[bytes, bool]:
    body = bytearray()
    if request.method == "HEAD":
        return b"", False
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > request.most_bytes:
            return bytes(body[: request.most_bytes]), True
    return bytes(body), False
