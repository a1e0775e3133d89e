"""All servers of a home: McpManager, which the tools of group `mcp` ask for.

It starts nothing and imports nothing of `mcp` until there is a server to be opened.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import structlog

from agentd.config import Config
from agentd.connectors import names
from agentd.connectors.server import McpServer, Terms
from agentd.connectors.specs import Servers, ServerSpec, load_servers
from agentd.connectors.tokens import auth_of, expire
from agentd.domain.capability import Capability
from agentd.domain.errors import ConfigError, NotFound
from agentd.toolkit.definition import Tool

if TYPE_CHECKING:
    from agentd.connectors.catalog import RemoteTool

_log = structlog.get_logger()
_SETTLED_S = 15.0  # who wants to know all tools waits no longer for servers that just start
_SHOWN_MOST_CHARS = 200_000  # a quarter of what a model can read at once; or no task could work
_STOP_GRACE_S = 4.0  # beyond a server's own time to end: its guard's


class McpManager(Capability):
    """The servers by name, each with its owner while the manager is open.

    `version` rises when any server's tools have changed. `most`: how many tools a model is shown.
    """

    def __init__(
        self, servers: Servers, terms: Terms, workdir: Path, tokens: Path, most: int = 60
    ) -> None:
        self._terms = terms
        self._most = most
        self._workdir = workdir
        self._tokens = tokens
        self._is_open = False
        self.version = 0
        self.problems: Sequence[ConfigError] = servers.problems
        specs = [spec for spec in servers.specs if spec.enabled]
        prefixes = names.prefixes(spec.name for spec in specs)
        self.servers = {spec.name: self._server(spec, prefixes[spec.name]) for spec in specs}
        self._by_prefix = {each.prefix: each for each in self.servers.values()}

    @classmethod
    def of(
        cls, config: Config, servers: Servers | None = None, breaker_threshold: int | None = None
    ) -> "McpManager":
        """The servers of a home, or these; none is started."""
        mcp = config.mcp
        terms = Terms(
            connect_s=mcp.connect_seconds,
            call_s=mcp.call_seconds,
            close_s=mcp.close_seconds,
            idle_s=mcp.idle_seconds,
            breaker_threshold=breaker_threshold or mcp.breaker_threshold,
            breaker_cooldown_s=mcp.breaker_cooldown_seconds,
        )
        return cls(
            load_servers(config.mcp_path) if servers is None else servers,
            terms,
            workdir=config.home,  # not where the model writes: what stands there is found first
            tokens=config.mcp_tokens_path,
            most=mcp.direct_tools_most,
        )

    def _server(self, spec: ServerSpec, prefix: str) -> McpServer:
        return McpServer(
            spec=spec,
            prefix=prefix,
            terms=self._terms,
            workdir=self._workdir,
            auth=lambda: auth_of(spec, self._tokens),
            renew=lambda: expire(spec.name, self._tokens),
            changed=self._changed,
        )

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["McpManager"]:
        """Let every server's owner run inside the block; entered again, it is open already."""
        if self._is_open or not self.servers:
            yield self
            return
        self._is_open = True
        failure: Exception | None = None
        for problem in self.problems:
            _log.error("an MCP server is left out", error=problem.message, hint=problem.hint)
        try:
            async with anyio.create_task_group() as owners:
                for each in self.servers.values():
                    owners.start_soon(each.run)
                try:
                    yield self
                except Exception as error:  # noqa: BLE001 - raised again, and not in a group
                    failure = error
                finally:
                    for each in self.servers.values():
                        each.stop()
                    # A server that does not even let itself be closed is cut off.
                    grace_s = self._terms.close_s + _STOP_GRACE_S
                    owners.cancel_scope.deadline = anyio.current_time() + grace_s
        finally:
            self._is_open = False
        if failure is not None:
            raise failure

    def get(self, name: str) -> McpServer:
        """By its name, or the one that its tools bear. Raises NotFound."""
        found = self.servers.get(name) or self._by_prefix.get(name)
        if found is None:
            there = ", ".join(sorted(self.servers)) or "none"
            raise NotFound("MCP server", name, hint=f"There are: {there}.")
        return found

    async def settled(self, patience_s: float = _SETTLED_S) -> None:
        """Until the first try of every server has had an outcome, or for as long as that."""
        with anyio.move_on_after(patience_s):
            for each in self.servers.values():
                await each.settled.wait()

    def remote_tools(self) -> "list[RemoteTool]":
        """What the servers have listed, by name."""
        catalogs = [each.catalog for each in self.servers.values() if each.catalog]
        return sorted((tool for each in catalogs for tool in each.tools), key=lambda t: t.name)

    # -- for the registry: tools that come and go --------------------------------------------

    def find(self, name: str) -> Tool | None:
        """The tool of that name, also one that models are not shown."""
        parts = names.split(name)
        server = self._by_prefix.get(parts[0]) if parts else None
        if parts is None or server is None:
            return None
        from agentd.connectors.proxy import awaited, proxy  # noqa: PLC0415 - only with servers

        remote = server.tool(name)
        if remote is not None:
            return proxy(server, remote)
        return awaited(server, name, parts[1]) if server.catalog is None else None

    def shown(self, others: int) -> Sequence[Tool]:
        """The tools that a model is shown beside `others` of its own; all of them, or none."""
        remote = self.remote_tools()
        chars = sum(each.shown_chars for each in remote)
        if not remote or len(remote) + others > self._most or chars > _SHOWN_MOST_CHARS:
            return ()
        from agentd.connectors.proxy import proxy  # noqa: PLC0415 - only with servers

        return [proxy(self.servers[each.server], each) for each in remote]

    def _changed(self) -> None:
        self.version += 1
