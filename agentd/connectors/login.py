"""OAuth with an HTTP server: once with a person and a browser, then without anybody.

What a login gives is kept together with where it was given, so that a token is refreshed after a
restart without asking the server for its metadata again.
"""

import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import AnyUrl

from agentd.connectors import tokens
from agentd.connectors.failures import LoginNeeded, ServerFailed
from agentd.connectors.session import Calling, explain, open_session
from agentd.connectors.specs import ServerSpec
from agentd.domain.clock import SystemClock
from agentd.domain.errors import AgentdError, ConfigError

Tell = Callable[[str], None]
_PERSON_S = 600.0  # to log in
_PASTED = "http://127.0.0.1:8976/callback"  # nobody listens there: its address is pasted
_EARLY_S = 30.0  # a token that runs out so soon is refreshed now
_PAGE = b"<!doctype html><title>agentd</title><p>You are logged in. You can close this window.</p>"


@dataclass(frozen=True, slots=True)
class Person:
    """How one is sent to the login page (`send`), and what comes back to `redirect` (`wait`)."""

    redirect: str
    send: Callable[[str], Awaitable[None]]
    wait: Callable[[], Awaitable[AuthorizationCodeResult]]


class _Kept(TokenStorage):
    """The file of one server's login."""

    def __init__(self, spec: ServerSpec, folder: Path) -> None:
        self._spec = spec
        self._folder = folder
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        found = self._read().get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        life_s = tokens.expires_in
        now = SystemClock().now().timestamp()
        self._write(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires_at=None if life_s is None else now + life_s - _EARLY_S,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._read().get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write(client=client_info.model_dump(mode="json", exclude_none=True))

    def restore(self, provider: OAuthClientProvider) -> None:
        """Let `provider` know what it would have to ask for again."""
        self.provider = provider
        kept = self._read()
        provider.context.token_expiry_time = kept.get("expires_at")
        if kept.get("metadata"):
            provider.context.oauth_metadata = OAuthMetadata.model_validate(kept["metadata"])

    def _read(self) -> dict[str, Any]:
        kept = tokens.read(self._spec.name, self._folder)
        # A login belongs to one address: never send it to another.
        return kept if kept.get("url") == self._spec.url else {}

    def _write(self, **facts: Any) -> None:
        kept = {**self._read(), **facts, "url": self._spec.url}
        metadata = self.provider.context.oauth_metadata if self.provider else None
        if metadata is not None:
            kept["metadata"] = metadata.model_dump(mode="json", exclude_none=True)
        tokens.write(self._spec.name, self._folder, kept)


def unattended(spec: ServerSpec, folder: Path) -> OAuthClientProvider:
    """Uses and refreshes what a login gave; where that does not do, LoginNeeded is raised."""

    async def nobody(*_: object) -> Any:
        raise LoginNeeded(f"MCP server {spec.name} wants a person to log in")

    kept = _Kept(spec, folder)
    made = OAuthClientProvider(
        spec.url,
        _metadata(spec, _PASTED),
        kept,
        nobody,
        nobody,
        client_metadata_url=spec.oauth.client_metadata_url,
    )
    kept.restore(made)
    return made


def log_in(spec: ServerSpec, folder: Path, *, paste: bool, tell: Tell) -> bool:
    """Ask the person to log in, and keep what that gives; what was kept before, if it fails.

    False: the server wants no login. Raises ConfigError, ServerFailed.
    """
    if spec.transport == "stdio":
        raise ConfigError(
            f"MCP server {spec.name} is a process: it has no login",
            hint="Give it what it needs with `env` in mcp.json.",
        )
    before = tokens.read(spec.name, folder)
    tokens.forget(spec.name, folder)
    try:
        return anyio.run(_log_in, spec, folder, paste, tell)
    except BaseException:
        tokens.forget(spec.name, folder)
        if before:
            tokens.write(spec.name, folder, before)
        raise


async def _log_in(spec: ServerSpec, folder: Path, paste: bool, tell: Tell) -> bool:
    kept = _Kept(spec, folder)
    try:
        async with _pasted(tell) if paste else listening(tell) as person:
            auth = await attended(spec, folder, person)
            async with open_session(_calling(spec, auth)) as session:
                await session.tools()
    except AgentdError:
        raise
    except Exception as error:
        raise ServerFailed(f"the login at {spec.name} failed: {explain(error)}") from error
    return await kept.get_tokens() is not None


async def attended(spec: ServerSpec, folder: Path, person: Person) -> OAuthClientProvider:
    """Asks `person` whenever the server wants it, and keeps what that gives."""
    kept = _Kept(spec, folder)
    if spec.oauth.client_id is not None:
        await kept.set_client_info(_registered(spec, person.redirect))
    made = OAuthClientProvider(
        spec.url,
        _metadata(spec, person.redirect),
        kept,
        person.send,
        person.wait,
        client_metadata_url=spec.oauth.client_metadata_url,
    )
    kept.provider = made
    return made


@asynccontextmanager
async def _pasted(tell: Tell) -> AsyncGenerator[Person]:
    async def send(url: str) -> None:
        tell(f"Open this page and log in:\n\n{url}\n")
        tell("The page that comes last can not be shown. Paste its address here:")

    async def wait() -> AuthorizationCodeResult:
        line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        return code_in(line.strip())

    yield Person(_PASTED, send, wait)


@asynccontextmanager
async def listening(tell: Tell) -> AsyncGenerator[Person]:
    """A page on loopback that the browser is sent back to."""
    came = anyio.Event()
    addresses: list[str] = []

    async def reply(stream: SocketStream) -> None:
        line = (await stream.receive(65536)).split(b"\r\n")[0].decode(errors="replace")
        words = line.split(" ")
        found = len(words) > 1 and words[1].startswith("/callback?")
        status, page = (b"200 OK", _PAGE) if found else (b"404 Not Found", b"")
        head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
        await stream.send(head % (status, len(page)) + page)
        if found and not came.is_set():
            addresses.append(words[1])
            came.set()

    async def answer(stream: SocketStream) -> None:
        # Browsers open connections that they do not use; whoever else comes must not end the login.
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await reply(stream)

    async def send(url: str) -> None:
        tell(f"Open this page and log in, if it does not open by itself:\n\n{url}\n")
        await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)

    async def wait() -> AuthorizationCodeResult:
        await came.wait()
        return code_in(addresses[0])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - anyio's, no SQL
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        yield Person(f"http://127.0.0.1:{port}/callback", send, wait)
        group.cancel_scope.cancel()


def code_in(address: str) -> AuthorizationCodeResult:
    """Of the address that the login page sent the browser to. Raises ServerFailed."""
    given = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    if "error" in given:
        raise ServerFailed(
            f"the login was refused: {given.get('error_description', given['error'])}"
        )
    if "code" not in given:
        raise ServerFailed("there is no code in that address", hint="Paste the whole address.")
    return AuthorizationCodeResult(
        code=given["code"], state=given.get("state"), iss=given.get("iss")
    )


def _metadata(spec: ServerSpec, redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="agentd", redirect_uris=[AnyUrl(redirect)], scope=spec.oauth.scope
    )


def _registered(spec: ServerSpec, redirect: str) -> OAuthClientInformationFull:
    """A client that a person registered by hand."""
    secret = spec.oauth.client_secret
    return OAuthClientInformationFull(
        client_id=spec.oauth.client_id or "",
        client_secret=secret,
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
        redirect_uris=[AnyUrl(redirect)],
    )


def _calling(spec: ServerSpec, auth: OAuthClientProvider) -> Calling:
    async def cancel(asked: ElicitRequestParams) -> ElicitResult:
        del asked
        return ElicitResult(action="cancel")

    return Calling(
        spec=spec,
        workdir=Path.cwd(),
        connect_s=_PERSON_S,
        close_s=1,
        auth=auth,
        ended=lambda _: None,
        changed=lambda: None,
        elicit=cancel,
    )
