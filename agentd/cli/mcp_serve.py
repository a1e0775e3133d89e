"""`agentd mcp serve`: the tools of this home for MCP clients, over stdio or HTTP on loopback."""

import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, MutableMapping
from pathlib import Path
from typing import Any

import anyio
import click
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

from agentd.app_tools import call_tool, make_toolbox
from agentd.cli.context import Context, Opened
from agentd.connectors.serving import make_server, offered
from agentd.daemon.logs import configure_logs
from agentd.daemon.signals import watch_signals
from agentd.domain.errors import ConfigError
from agentd.private_files import put
from agentd.toolkit.definition import Tool
from agentd.toolkit.progress import Progress, Tell
from agentd.toolkit.result import ToolResult

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CLOSE_S = 3  # for answers under way, when it is to stop

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]


def serve_over(context: Context, http: str | None) -> None:
    """Until the client has gone (stdio), or a signal comes (HTTP)."""
    configure_logs(level="warning", style="auto")
    address = None if http is None else _address(http)

    async def work(opened: Opened) -> None:
        async with make_home_server(opened) as server:
            if address is None:
                async with stdio_server() as (read, write):
                    await server.run(read, write, server.create_initialization_options())
            else:
                await _serve_http(server, address, opened.config.run_path / "mcp-token")

    context.run(work)


@contextlib.asynccontextmanager
async def make_home_server(opened: Opened) -> AsyncGenerator[Server[Any]]:
    """A server of the tools of a home. Other servers run meanwhile if their tools are offered."""
    toolbox = make_toolbox(opened.config, opened.store)
    for problem in toolbox.problems:
        click.echo(f"A tool is left out: {problem.message}", err=True)

    async def call(tool: Tool, arguments: dict[str, Any], tell: Tell) -> ToolResult:
        return await call_tool(toolbox, opened.store, tool, arguments, Progress(tell))

    tools = offered(toolbox.registry, opened.config.mcp.serve)
    made = make_server(tools, call)
    if any(tool.group == "mcp" for tool in tools):
        async with toolbox.runners.servers.open():
            yield made
    else:
        yield made


async def _serve_http(server: Server[Any], address: tuple[str, int], token_path: Path) -> None:
    host, port = address
    app = _Guarded(server.streamable_http_app(host=host), _token(token_path))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"{host} port {port} can not be listened at: {error.strerror}",
                hint="Take another port; with 0 one that is free is taken.",
            ) from error
        web = _Web(
            uvicorn.Config(
                app, log_config=None, access_log=False, timeout_graceful_shutdown=_CLOSE_S
            )
        )
        bound = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"http://{shown}:{bound}/mcp (the token stands in {token_path})", err=True)
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(watch_signals, stopping)
            group.start_soon(_stop_at, stopping, web)
            await web.serve(sockets=[listening])
            group.cancel_scope.cancel()


class _Web(uvicorn.Server):
    """Signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _stop_at(stopping: anyio.Event, web: uvicorn.Server) -> None:
    await stopping.wait()
    web.should_exit = True


class _Guarded:
    """Lets in whoever has the token."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


def _token(path: Path) -> str:
    """Of this home; made with the first `serve`, readable by nobody else."""
    with contextlib.suppress(FileNotFoundError):
        found = path.read_text(encoding="ascii").strip()
        if found:
            return found
    made = secrets.token_urlsafe(32)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    put(path, f"{made}\n".encode())
    return made


def _address(text: str) -> tuple[str, int]:
    """Raises UsageError, and ConfigError for an address that others can reach."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not [HOST:]PORT", param_hint="--http")
    if host not in _LOOPBACK:
        raise ConfigError(
            f"{host} is not loopback, and agentd opens no port to others",
            hint="Use 127.0.0.1 and a tunnel (ssh -L) or a reverse proxy that encrypts.",
        )
    return host, int(port)
