"""A command that runs: its process, its output, its limits, and how all of it ends.

Every command is started here. A confined one is `bwrap`, whose child is the first process
of a namespace: when that is killed, the kernel kills everything in it, wherever it has gone. bwrap
and that first process end with us, too. A plain one is found by its tree, its group and its mark.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from agentd.domain.errors import ToolError
from agentd.domain.ids import new_id
from agentd.sandbox.bubblewrap import View, bwrap_options
from agentd.sandbox.control_group import ControlGroup, control_group
from agentd.sandbox.limits import (
    Limits,
    Watch,
    limit_process,
    limited_from_start,
    processes_limited,
)
from agentd.sandbox.seccomp import seccomp_filter
from agentd.sandbox.tree import descendants, marked, send

_PATIENCE_S = 5.0  # between asking a command to end and killing it
_LOOK_S = 0.02
_LISTEN_ON_S = 0.5
_MARK = "AGENTD_COMMAND"


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `bwrap`: None is a plain process. `has_input`: it will be sent something.

    `limits`: None for what the owner has configured to run outside; nobody counts that, either.
    `written`: the folders that hold what it writes, where it is known. `trusted`: a program of ours
    that ends soon; nobody counts what it takes, which would cost more than it does.
    """

    bwrap: Path | None
    argv: Sequence[str]
    view: View
    limits: Limits | None
    has_input: bool
    written: tuple[Path, ...] = ()
    trusted: bool = False


class Running:
    """Made by `running`, which also sees to its end."""

    def __init__(self, process: Process, launch: Launch, status_fd: int | None, mark: str) -> None:
        self._process = process
        self._launch = launch
        self._status_fd = status_fd
        self._mark = mark
        self._unread = False
        self.exceeded: str | None = None

    @property
    def pid(self) -> int:
        """Of the process that we have started: bwrap, or the command itself."""
        return self._process.pid

    async def wait(self) -> int:
        """The exit code; a command that a signal ended has 128 and its number, as in a shell."""
        code = await self._process.wait()
        return 128 - code if code < 0 else code

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        """Pass on what it says, until nobody can say anything any more."""
        assert self._process.stdout is not None
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for piece in self._process.stdout:
                heard(piece)

    async def tell(self, data: bytes) -> bool:
        """Write to its standard input. False when it does not listen.

        Cancelled, the rest of `data` waits for it; before that was read nothing more is taken.
        """
        if self._process.stdin is None:
            return False
        try:
            if self._unread:
                await self._process.stdin.send(b"")
            self._unread = True
            await self._process.stdin.send(data)
            self._unread = False
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return False
        return True

    async def hang_up(self) -> None:
        """Close its standard input."""
        if self._process.stdin is not None:
            with contextlib.suppress(anyio.BrokenResourceError, OSError):
                await self._process.stdin.aclose()

    async def watch(self) -> None:
        """Kill it when it takes too much; `exceeded` then says what. Until cancelled."""
        launch = self._launch
        if launch.limits is None or launch.trusted:
            return
        watch = Watch(launch.limits, launch.view.roots[0].path, launch.written)
        await watch.run(self.pid, self._exceed)

    def signal(self, number: signal.Signals) -> None:
        """To each process of the command, but not to what confines it."""
        send(self._pids(), number)

    def kill(self) -> None:
        """Everything, at once."""
        if self._launch.bwrap is not None:
            # The first process of the namespace takes all others along.
            send(descendants(self.pid)[:1], signal.SIGKILL)
        else:
            send(self._pids(), signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def end(self) -> None:
        """Ask all of it to end, wait for 5 s, kill what is left."""
        self.signal(signal.SIGTERM)
        with anyio.move_on_after(_PATIENCE_S):
            while self._pids():  # noqa: ASYNC110 - the kernel tells nobody
                await anyio.sleep(_LOOK_S)
        self.kill()
        await self._process.wait()

    def failure(self) -> str | None:
        """Why the sandbox could not run it, once it has ended; None when it ran."""
        if self._status_fd is None:
            return None
        said = os.pread(self._status_fd, 4096, 0).decode(errors="replace")
        facts: list[dict[str, int]] = [json.loads(line) for line in said.splitlines()]
        ran = any("exit-code" in each for each in facts)
        # Without an exit code: it was killed from outside, or bwrap gave up before the start.
        return None if ran or self._process.returncode != 1 else "bwrap gave up"

    def _pids(self) -> list[int]:
        """The processes of the command."""
        below = descendants(self.pid)
        if self._launch.bwrap is not None:
            return below[1:]  # the first one is bwrap's own, in the namespace
        alive = [] if self._process.returncode is not None else [self.pid]
        return [*dict.fromkeys([*alive, *below, *marked(self._mark)])]

    def _exceed(self, reason: str) -> None:
        self.exceeded = reason
        self.kill()

    async def aclose(self) -> None:
        """Leave nothing of it behind."""
        self.kill()
        # What it said is in the pipe; a plain process that went away may hold that open for ever.
        with anyio.move_on_after(_LISTEN_ON_S):
            await self._process.aclose()


@asynccontextmanager
async def running(launch: Launch) -> AsyncGenerator[Running]:
    """Start it. Whatever happens in the block, nothing of it runs after it. Raises ToolError."""
    status_fd = os.memfd_create("status") if launch.bwrap is not None else None
    try:
        mark = f"{_MARK}={new_id()}"
        limits = None if launch.trusted else launch.limits
        with nullcontext() if limits is None else control_group(limits) as group:
            process = await (
                _plain(launch, mark) if status_fd is None else _confined(launch, status_fd, group)
            )
            made = Running(process, launch, status_fd, mark)
            try:
                yield made
            finally:
                with anyio.CancelScope(shield=True):
                    await made.aclose()
    finally:
        if status_fd is not None:
            os.close(status_fd)


async def attend(child: Running, stdin: bytes | None, heard: Callable[[bytes], None]) -> int:
    """Feed it, listen to it and watch it until it has ended. The exit code.

    stdin: None leaves its standard input open for others. Cancelled, it is asked to end, and killed
    after 5 s; what it says meanwhile is heard.
    """
    ears, code = anyio.CancelScope(shield=True), 0

    async def listen() -> None:
        with ears:
            await child.listen(heard)

    async with anyio.create_task_group() as beside:
        beside.start_soon(listen)
        beside.start_soon(child.watch)
        if stdin is not None:
            beside.start_soon(_feed, child, stdin)
        try:
            code = await child.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await child.end()
            raise
        finally:
            child.kill()  # what a plain command has left behind
            ears.deadline = anyio.current_time() + _LISTEN_ON_S
        beside.cancel_scope.cancel()
    return code


async def _feed(child: Running, data: bytes) -> None:
    await child.tell(data)
    await child.hang_up()


async def _confined(launch: Launch, status_fd: int, group: ControlGroup | None) -> Process:
    """It waits for its options until its limits are set."""
    assert launch.bwrap is not None
    assert launch.limits is not None
    filter_fd, there, here = None, -1, -1
    try:
        program = seccomp_filter()
        if program is not None:
            filter_fd = os.memfd_create("filter")
            os.pwrite(filter_fd, program, 0)
        try:
            options = bwrap_options(launch.view, filter_fd=filter_fd, status_fd=status_fd)
        except UnicodeEncodeError as error:
            raise ToolError("not_started", f"the command could not be started: {error}") from error
        there, here = os.pipe()
        handed = [fd for fd in (there, status_fd, filter_fd) if fd is not None]
        limited = processes_limited(launch.argv, launch.limits)
        argv = [str(launch.bwrap), "--args", str(there), "--", *limited]
        process = await _open(argv, launch, environment={}, workdir=None, pass_fds=handed)
        try:
            limit_process(process.pid, launch.limits)
            if group is not None:
                group.add(process.pid)
            with contextlib.suppress(BrokenPipeError):
                await _write(here, options)
        except BaseException:
            process.kill()
            raise
        return process
    finally:
        for fd in (filter_fd, there, here):
            if fd is not None and fd >= 0:
                os.close(fd)


async def _write(fd: int, data: bytes) -> None:
    """Into a pipe; what does not fit waits in a thread for its reader."""
    room = fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    if len(data) <= room:
        os.write(fd, data)
        return

    def write_all() -> None:
        with os.fdopen(os.dup(fd), "wb") as pipe:
            pipe.write(data)

    await anyio.to_thread.run_sync(write_all)


async def _plain(launch: Launch, mark: str) -> Process:
    name, _, value = mark.partition("=")
    environment = {**launch.view.environment, name: value}
    limits, workdir = launch.limits, launch.view.workdir
    argv = launch.argv if limits is None else limited_from_start(launch.argv, limits)
    process = await _open(argv, launch, environment=environment, workdir=workdir, pass_fds=[])
    if limits is not None:
        limit_process(process.pid, limits)
    return process


async def _open(
    argv: Sequence[str],
    launch: Launch,
    *,
    environment: Mapping[str, str],
    workdir: Path | None,
    pass_fds: Sequence[int],
) -> Process:
    try:
        return await anyio.open_process(
            argv,
            stdin=subprocess.PIPE if launch.has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=workdir,
            env=environment,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except FileNotFoundError as error:
        raise ToolError("not_found", f"there is no {error.filename}") from error
    except (OSError, ValueError) as error:  # too long, a NUL character, no more processes
        raise ToolError("not_started", f"the command could not be started: {error}") from error
