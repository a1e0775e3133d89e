"""The background processes of this daemon, each with a task of its own that sees to its end.

A process ends when no unfinished task of its session is left, when its run is lost to another
daemon, and when the daemon stops; when the daemon is killed, the kernel kills it, too.
"""

import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import anyio
import structlog
from anyio.abc import TaskGroup

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import AgentdError, StoreError, ToolError
from agentd.domain.ids import DaemonId, SessionId, new_id
from agentd.domain.redacted_stream import RedactedStream
from agentd.domain.redactor import Redactor
from agentd.domain.run import Run
from agentd.processes.log import Part, ProcessLog
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.running import Running, attend
from agentd.store.processes import ProcessRecord, ProcessStore

_log = structlog.get_logger()
_LOOK_S = 15.0  # although nobody said that a run has ended
_DIED = "the daemon died, and the process with it"
_MB = 1 << 20
_OF_SESSION_MOST, _MOST = 16, 64


@dataclass(slots=True)
class _Process:
    """One that runs. `why`: who or what ended it, in words."""

    id: str
    run: Run
    log: ProcessLog
    stream: RedactedStream
    child: Running | None = None
    why: str | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)

    def heard(self, data: bytes) -> None:
        self._keep(self.stream.feed(data))

    def _keep(self, data: bytes) -> None:
        try:
            self.log.append(data)
        except OSError as error:
            self.end(f"its output could not be kept: {error}")

    def heard_all(self) -> None:
        self._keep(self.stream.end())

    def end(self, why: str) -> None:
        self.why = self.why or why
        self.scope.cancel()


@dataclass(frozen=True, slots=True)
class Settings:
    """`folder`: of the logs. `is_alive`: whether a daemon of this home still runs.

    `redactor`: takes secrets out of what is kept.
    """

    folder: Path
    log_mb: int
    keep_days: float
    is_alive: Callable[[DaemonId], bool]
    redactor: Redactor


class Processes(Capability):
    """`serve` holds it open; before and after that nothing can be started."""

    def __init__(
        self, commands: Commands, store: ProcessStore, clock: Clock, settings: Settings
    ) -> None:
        self._commands = commands
        self._store = store
        self._clock = clock
        self._settings = settings
        self._running: dict[str, _Process] = {}
        self._tasks: TaskGroup | None = None
        self._attention = anyio.Event()

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Processes can be started in the block, and are ended after it."""
        self._settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._forget()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as looking:
            self._tasks = tasks
            looking.start_soon(self._look)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again, but not as a group
                failure = error
            finally:
                self._tasks = None
                looking.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._end(list(self._running.values()), "the daemon stopped")
        with suppress(OSError):  # there are logs in it
            self._settings.folder.rmdir()
        if failure is not None:
            raise failure

    @property
    def has_network(self) -> bool:
        """Whether what they print may come from strangers."""
        return self._commands.settings.grant is not None

    async def start(self, run: Run, command: Command, shown: str) -> str:
        """The id of the new process. `shown`: the command as people read it. Raises ToolError."""
        if self._tasks is None:
            raise ToolError(
                "unavailable",
                "a background process belongs to a daemon, and there is none in this place",
                next_action_hint="Run it without background.",
            )
        self._check_room(run)
        process_id = new_id()
        stream = RedactedStream(self._settings.redactor)
        process = _Process(process_id, run, self._log(process_id), stream)
        self._running[process_id] = process
        try:
            await self._store.add(process_id, run, shown)
        except BaseException:
            del self._running[process_id]
            raise
        started: anyio.Event = anyio.Event()
        failures: list[ToolError] = []
        self._tasks.start_soon(self._work, process, command, started, failures)
        await started.wait()
        if failures:
            raise failures[0]
        return process_id

    def _check_room(self, run: Run) -> None:
        """Each takes descriptors and threads of the daemon, and may run for a day."""
        of_session = [e for e in self._running.values() if e.run.session_id == run.session_id]
        if len(of_session) >= _OF_SESSION_MOST or len(self._running) >= _MOST:
            raise ToolError(
                "too_many",
                f"{len(of_session)} background processes of this session run, {len(self._running)} "
                f"in all; there may be {_OF_SESSION_MOST} and {_MOST}",
                next_action_hint='process(action="list") shows them; end those that are not needed '
                'with process(action="signal", signal="SIGTERM").',
            )

    async def get(self, process_id: str, session_id: SessionId | None) -> ProcessRecord:
        """What is known of it. Raises ToolError when that session has no such process."""
        record = await self._store.get(process_id)
        if record is None or session_id not in (None, record.session_id):
            raise ToolError(
                "not_found",
                f"this session has no process {process_id}",
                next_action_hint='process(action="list") shows those that it has.',
            )
        return await self._settled(record)

    async def list(self, session_id: SessionId | None) -> list[ProcessRecord]:
        """Newest first; None: of all sessions."""
        return [await self._settled(each) for each in await self._store.list(session_id)]

    def output(self, process_id: str, offset: int, most_bytes: int) -> Part:
        return self._log(process_id).read(offset, most_bytes)

    async def tell(self, process_id: str, data: bytes) -> None:
        """Write to its standard input. Raises ToolError."""
        child = self._child(process_id)
        with anyio.move_on_after(5):
            if await child.tell(data):
                return
        raise ToolError("not_listening", "the process does not read its standard input")

    async def hang_up(self, process_id: str) -> None:
        """Close its standard input."""
        await self._child(process_id).hang_up()

    def signal(self, process_id: str, number: signal.Signals) -> None:
        """To each process of it. Raises ToolError."""
        child = self._child(process_id)
        process = self._running[process_id]
        if number is signal.SIGKILL:
            process.why = process.why or "killed by signal"
        child.signal(number)

    def run_ended(self, run: Run, *, lost: bool) -> None:
        """A run of this daemon is over. `lost`: another daemon has the task now."""
        for each in list(self._running.values()):
            if lost and each.run.id == run.id:
                each.end("its run was lost to another daemon")
        self._attention.set()

    async def _work(
        self,
        process: _Process,
        command: Command,
        started: anyio.Event,
        failures: "list[ToolError]",
    ) -> None:
        code: int | None = None
        try:
            with process.scope:
                async with self._commands.start(command) as child:
                    process.child = child
                    started.set()
                    with anyio.move_on_after(command.timeout_s) as time:
                        code = await attend(child, None, process.heard)
                    if time.cancelled_caught:
                        process.why = process.why or f"timed out after {command.timeout_s:g}s"
                    if child.exceeded is not None:
                        process.why, code = child.exceeded, None
                    elif child.failure() is not None:
                        process.why, code = "it could not be started: see its output", None
        except ToolError as error:
            process.why = error.message
            failures.append(error)
        except Exception:  # noqa: BLE001 - one process must not take the daemon along
            _log.exception("a process could not be seen to its end", process=process.id)
            process.why = "an internal error"
        finally:
            with anyio.CancelScope(shield=True):
                await self._ended(process, code)
                started.set()

    async def _ended(self, process: _Process, code: int | None) -> None:
        process.heard_all()
        try:
            await self._store.end(process.id, code, process.why)
        except StoreError as error:
            _log.error("the end of a process could not be stored", error=error.message)
        del self._running[process.id]
        process.ended.set()

    async def _look(self) -> None:
        """End processes of sessions that have nothing more to do. Until cancelled."""
        while True:
            with anyio.move_on_after(_LOOK_S):
                await self._attention.wait()
            self._attention = anyio.Event()  # before looking: what happens meanwhile counts again
            sessions = {each.run.session_id for each in self._running.values()}
            if not sessions:
                continue
            try:
                finished = await self._store.finished(sessions)
            except AgentdError as error:
                _log.error("could not look for processes to end", error=error.message)
                continue
            for each in list(self._running.values()):
                if each.run.session_id in finished:
                    each.end("its session had nothing more to do")

    async def _end(self, processes: "list[_Process]", why: str) -> None:
        for each in processes:
            each.end(why)
        for each in processes:
            await each.ended.wait()

    async def _settled(self, record: ProcessRecord) -> ProcessRecord:
        """With its end, if the daemon that could have said it is dead."""
        if record.ended_at is not None or record.id in self._running:
            return record
        if self._settings.is_alive(record.daemon_id):
            return await self._store.get(record.id) or record
        await self._store.end(record.id, None, _DIED)
        return await self._store.get(record.id) or record

    async def _forget(self) -> None:
        before = self._clock.now() - timedelta(days=self._settings.keep_days)
        for each in await self._store.forget(before):
            self._log(each).remove()

    def _child(self, process_id: str) -> Running:
        process = self._running.get(process_id)
        if process is None or process.child is None:
            raise ToolError("not_running", f"process {process_id} does not run in this daemon")
        return process.child

    def _log(self, process_id: str) -> ProcessLog:
        most_bytes = self._settings.log_mb * _MB
        return ProcessLog(self._settings.folder / f"{process_id}.log", most_bytes)
