"""One server: a task that owns its connection, and what everybody else may ask of it.

Only the owner enters and leaves the connection. It lists the tools, waits for its end, and starts
again: at once, then later and later, then seldom (a breaker). Nothing that the server does gets
further than this file.
"""

import contextlib
import importlib
import random
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from agentd.connectors.failures import LoginNeeded, ServerFailed
from agentd.connectors.specs import ServerSpec
from agentd.domain.errors import ToolError
from agentd.domain.event import storable

if TYPE_CHECKING:  # `mcp` takes a second to load: not where there is no server
    import httpx2
    from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

    from agentd.connectors.catalog import Catalog, RemoteTool
    from agentd.connectors.session import Calling, Session

_log = structlog.get_logger()
_RETRY_CAP_S = 30.0
_STEADY_S = 30.0  # a connection that has held so long was no failure
_RELIST_S = 0.2  # changes that come together are looked at once
_ASIDE_SHOWN = 20  # in the log; `agentd mcp tools` shows all
_NAME_SHOWN = 128

Progress = Callable[[float, float | None, str | None], None]
Ask = Callable[["ElicitRequestParams"], Awaitable["ElicitResult | None"]]


class State(StrEnum):
    IDLE = "idle"  # no connection; a call opens one
    STARTING = "starting"
    READY = "ready"
    RETRYING = "retrying"  # failed; tried again soon
    RESTING = "resting"  # failed again and again; left alone for a while
    LOGIN = "login needed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the configuration says of every server; `retry_base_s`: what doubles with failures."""

    connect_s: float
    call_s: float
    close_s: float
    idle_s: float
    breaker_threshold: int
    breaker_cooldown_s: float
    retry_base_s: float = 0.5


@dataclass(slots=True)
class _Line:
    """A call under way. `ask`: who answers questions that the server asks meanwhile."""

    ask: Ask | None


_current: ContextVar[_Line | None] = ContextVar("agentd_mcp_call", default=None)


@dataclass
class McpServer:
    """`prefix`: how the names of its tools begin. `changed`: called when its tools have changed.

    `auth` and `renew`: how requests are authorised, and whether a token that was refused can be
    replaced without a person.
    """

    spec: ServerSpec
    prefix: str
    terms: Terms
    workdir: Path
    auth: "Callable[[], httpx2.Auth | None]"
    renew: Callable[[], bool] = lambda: False
    changed: Callable[[], None] = lambda: None
    state: State = State.STARTING
    problem: str | None = None
    protocol: str | None = None
    failures: int = 0
    catalog: "Catalog | None" = None
    _session: "Session | None" = None
    _lines: list[_Line] = field(default_factory=list[_Line])

    def __post_init__(self) -> None:
        self._news, self._turned = anyio.Event(), anyio.Event()
        self._connecting: anyio.CancelScope | None = None
        self._ended: str | None = None
        self._relist = False
        self._wanted = True
        self._stopping = False
        self._renewed = False  # a token that was refused was replaced, and nothing has worked since
        self._used_at = 0.0
        self.settled = anyio.Event()  # the first try has had an outcome

    # -- the owner ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Own the connection until `stop`. Never raises anything of the server's."""
        try:
            while not self._stopping:
                if self._wanted:
                    delay_s = await self._connect_once()
                    await self._rest(delay_s)
                else:
                    await self._hear(None)
        finally:
            self._turn(State.STOPPED)

    def stop(self) -> None:
        """Let the owner close the connection and end."""
        self._stopping = True
        if self._session is None and self._connecting is not None:
            self._connecting.cancel()
        self._tell()

    async def _connect_once(self) -> float:
        """Hold one connection to its end; how long to wait before the next."""
        started = anyio.current_time()
        self._ended, self._wanted = None, False
        self._turn(State.STARTING)
        try:
            # It loads the package `mcp`: not on the event loop.
            module = await anyio.to_thread.run_sync(
                importlib.import_module, "agentd.connectors.session"
            )
            with anyio.CancelScope() as scope:
                self._connecting = scope
                await self._hold(module)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the server's failure
            self._session = None
            return self._failed(error, anyio.current_time() - started)
        self._session, self._renewed = None, False
        self._turn(State.IDLE)
        return 0.0

    async def _hold(self, module: Any) -> None:
        calling: Calling = module.Calling(
            spec=self.spec,
            workdir=self.workdir,
            connect_s=self.connect_s,
            close_s=self.terms.close_s,
            auth=self.auth(),
            ended=self._has_ended,
            changed=self._tools_changed,
            elicit=self._elicit,
        )
        async with module.open_session(calling) as session:
            with anyio.fail_after(calling.connect_s):
                await self._list(session)
            self._session, self.protocol = session, session.protocol
            self._used_at = anyio.current_time()
            self._turn(State.READY)
            async with anyio.create_task_group() as group:
                group.start_soon(session.heed_changes)
                await self._until_its_end(session)
                group.cancel_scope.cancel()
            self._session = None
            if self._ended is not None:
                raise ServerFailed(self._ended)

    async def _until_its_end(self, session: "Session") -> None:
        """Until it has gone, is to stop, or nobody has used it for long."""
        idle_s = self.spec.idle_s or self.terms.idle_s
        while self._ended is None and not self._stopping:
            left_s = self._used_at + idle_s - anyio.current_time()
            # A call under way keeps the connection, however long ago it began.
            await self._hear(idle_s if self._lines else max(0.0, left_s))
            if self._relist:
                await anyio.sleep(_RELIST_S)
                self._relist = False
                with anyio.fail_after(self.connect_s):
                    await self._list(session)
            if not self._lines and anyio.current_time() >= self._used_at + idle_s:
                _log.info("MCP server is idle and closed", server=self.spec.name)
                return

    async def _list(self, session: "Session") -> None:
        listed = await session.tools()
        module = importlib.import_module("agentd.connectors.catalog")
        catalog: Catalog = await anyio.to_thread.run_sync(
            module.make_catalog, self.spec, self.prefix, listed
        )
        if self.catalog is None or catalog.aside != self.catalog.aside:
            for name, reason in catalog.aside[:_ASIDE_SHOWN]:
                facts = {"server": self.spec.name, "tool": name[:_NAME_SHOWN], "why": reason}
                _log.warning("an MCP tool is set aside", **facts)
        if catalog != self.catalog:
            self.catalog = catalog
            self.changed()

    def _failed(self, error: Exception, held_s: float) -> float:
        session = importlib.import_module("agentd.connectors.session")
        lost = self._ended if session.is_lost(error) else None
        self.problem = lost or session.explain(error)
        was_steady = held_s > _STEADY_S
        self.failures = 1 if was_steady else self.failures + 1
        self._wanted = True
        if session.wants_login(error):
            # Once: a server may refuse the new token, too, and be given new ones for ever.
            self._renewed = (was_steady or not self._renewed) and self.renew()
            if self._renewed:
                return 0.0
            self._turn(State.LOGIN)
            hint = f"agentd mcp login {self.spec.name}"
            _log.error("MCP server wants a login", server=self.spec.name, hint=hint)
            return self.terms.breaker_cooldown_s
        resting = self.failures >= self.terms.breaker_threshold
        self._turn(State.RESTING if resting else State.RETRYING)
        delay_s = min(_RETRY_CAP_S, self.terms.retry_base_s * 2 ** (self.failures - 1))
        delay_s = self.terms.breaker_cooldown_s if resting else delay_s
        delay_s *= random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries, guards nothing
        _log.error(
            "MCP server failed",
            server=self.spec.name,
            error=self.problem,
            failures=self.failures,
            retry_s=round(delay_s, 1),
        )
        return delay_s

    async def _rest(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while not self._stopping and seconds:
                await self._hear(None)

    async def _hear(self, patience_s: float | None) -> None:
        with anyio.move_on_after(patience_s):
            await self._news.wait()
        self._news = anyio.Event()

    def _tell(self) -> None:
        self._news.set()

    def _turn(self, state: State) -> None:
        if state is not State.STARTING:
            self.settled.set()
        if state is State.READY:
            self.problem = None
            _log.info("MCP server is ready", server=self.spec.name, tools=self.tools_count)
        self.state = state
        # Whoever waits for it looks again.
        self._turned.set()
        self._turned = anyio.Event()

    def _has_ended(self, why: str) -> None:
        self._ended = why
        self._session = None
        self._tell()

    def _tools_changed(self) -> None:
        self._relist = True
        self._tell()

    # -- what others ask of it ---------------------------------------------------------------

    @property
    def connect_s(self) -> float:
        return self.spec.connect_s or self.terms.connect_s

    @property
    def tools_count(self) -> int:
        return len(self.catalog.tools) if self.catalog else 0

    @property
    def busy(self) -> int:
        """Calls under way."""
        return len(self._lines)

    def tool(self, name: str) -> "RemoteTool | None":
        """By its name there or here; None when it is not listed, or nothing is yet."""
        return self.catalog.find(name) if self.catalog else None

    async def ready(self) -> None:
        """Open the connection if need be. Raises ServerFailed."""
        await self._opened()

    async def list_again(self) -> None:
        """Ask for the tools anew. Raises ServerFailed."""
        session = await self._opened()
        try:
            await self._list(session)
        except Exception as error:
            text = importlib.import_module("agentd.connectors.session").explain(error)
            raise ServerFailed(f"MCP server {self.spec.name}: {text}") from error

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        progress: Progress | None = None,
        ask: Ask | None = None,
    ) -> "CallToolResult":
        """Call `tool`, by its name there. Raises ServerFailed and ToolError."""
        session = await self._opened()
        timeout_s = self.spec.call_s or self.terms.call_s
        line = _Line(ask)
        self._lines.append(line)
        token = _current.set(line)
        try:
            given = dict(storable(arguments))
            answer = await session.call(tool, given, timeout_s, progress)
        except Exception as error:
            raise self._call_failed(error, tool, timeout_s) from error
        else:
            self.failures, self._renewed = 0, False
            return answer
        finally:
            _current.reset(token)
            self._lines.remove(line)
            self._used_at = anyio.current_time()

    async def _opened(self) -> "Session":
        if self._session is not None:
            self._used_at = anyio.current_time()
            return self._session
        with (
            contextlib.suppress(TimeoutError),
            anyio.fail_after(self.connect_s),
        ):
            while True:
                if self._session is not None:
                    self._used_at = anyio.current_time()
                    return self._session
                if self.state in (State.RESTING, State.STOPPED):
                    raise ServerFailed(
                        f"MCP server {self.spec.name} is not there: {self.problem or self.state}",
                        hint="It is tried again by itself; do something else meanwhile.",
                    )
                if self.state is State.LOGIN:
                    raise LoginNeeded(
                        f"MCP server {self.spec.name} wants a person to log in",
                        hint=f"A person must run: agentd mcp login {self.spec.name}",
                    )
                self._wanted = True
                self._tell()
                await self._turned.wait()
        why = self.problem or "it does not answer"
        raise ServerFailed(f"MCP server {self.spec.name} is not there: {why}")

    def _call_failed(self, error: Exception, tool: str, timeout_s: float) -> Exception:
        session = importlib.import_module("agentd.connectors.session")
        kind, text = session.why_call_failed(error)
        where = f"{tool} of MCP server {self.spec.name}"
        match kind:
            case "timeout":
                return ToolError(
                    "timeout",
                    f"{where} took longer than {timeout_s:g} s",
                    next_action_hint="Whether it took effect is unknown; look before repeating it.",
                )
            case "input_error":
                return ToolError("input_error", f"{where}: {text}")
            case "lost":
                return ToolError(
                    "server_lost",
                    f"{where}: the server went away in the middle of the call ({text})",
                    next_action_hint="Whether it took effect is unknown; look before repeating it.",
                )
            case _:
                return ToolError("server_error", f"{where}: {text}")

    async def _elicit(self, asked: "ElicitRequestParams") -> "ElicitResult":
        """Whose call it is stands in the context, or is plain when there is only one."""
        types = importlib.import_module("mcp_types")
        line = _current.get() or (self._lines[0] if len(self._lines) == 1 else None)
        answered = await line.ask(asked) if line is not None and line.ask is not None else None
        nobody: ElicitResult = types.ElicitResult(action="cancel")
        return answered or nobody
