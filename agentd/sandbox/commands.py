"""Confined commands: the only way by which tools start a process."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.domain.ids import new_id
from agentd.sandbox.bubblewrap import Overlay, View, bwrap_program, make_branch
from agentd.sandbox.features import Features, explain_failure, machine_filters, without_bwrap
from agentd.sandbox.finish import Finished, finish
from agentd.sandbox.limits import Limits
from agentd.sandbox.merge import remove_tree
from agentd.sandbox.network import Granted
from agentd.sandbox.roots import Root
from agentd.sandbox.running import Launch, Running, running

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_BASIC = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108 - its own
_PROBE_S = 10.0


@dataclass(frozen=True, slots=True)
class Command:
    """What is to run. `workdir`: None is the first root. `programs`: files outside the system.

    `read_only`: it may change no file. `most_chars`: of its output, beyond which the middle is cut.
    `roots`: further folders, for this one. `binds`: further things to see, read-only, each with
    where. `network`: it may use what the owner grants. `trusted`: a program of ours, which may also
    run where the machine can confine nothing.
    """

    argv: Sequence[str]
    timeout_s: float
    workdir: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    programs: Sequence[Path] = ()
    read_only: bool = False
    most_chars: int = 100_000
    roots: Sequence[Root] = ()
    binds: Sequence[tuple[Path, Path]] = ()
    network: bool = False
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """`confined`: False when the owner does without. `environment`: what every command gets.
    `trusts`: whether programs of ours may run where the machine can confine nothing.

    `branches`: the folder for branches of the files; None: commands work on the files directly.
    `grant`: opens the network that is granted to a command, for as long as it runs; None: none is.
    `hidden`: resolved folders that commands never see, although they lie in a root.
    """

    limits: Limits = field(default_factory=Limits)
    confined: bool = True
    trusts: bool = True
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    branches: Path | None = None
    grant: Callable[[], AbstractAsyncContextManager[Granted]] | None = None
    hidden: Sequence[Path] = ()


class Commands(Capability):
    """Runs commands that reach nothing but `roots`; the first root is where they start."""

    def __init__(self, roots: Sequence[Root], settings: CommandSettings | None = None) -> None:
        self.roots = tuple(roots)
        self.settings = settings or CommandSettings()
        self._bwrap = bwrap_program()
        self._probing = anyio.Lock()
        self._features: Features | None = None

    async def run(self, command: Command, overlays: Sequence[Overlay] = ()) -> Finished:
        """Run it to its end. `overlays`: instead of roots. Raises ToolError.

        A cancelled one is asked to end, and killed after 5 s.
        """
        async with self._granted(command) as granted:
            launch = await self._launch(granted, has_input=bool(command.stdin), overlays=overlays)
            return await _finish(launch, command)

    @asynccontextmanager
    async def start(self, command: Command) -> AsyncGenerator[Running]:
        """Start it, with its standard input open; it runs no longer than the block."""
        async with (
            self._granted(command) as granted,
            running(await self._launch(granted, has_input=True)) as started,
        ):
            yield started

    async def features(self) -> Features:
        """What can be enforced here, whether it is switched on or not; tried until it works."""
        async with self._probing:
            if self._features is None or not self._features.confines:
                self._features = await self._probe()
            return self._features

    def branched_roots(self) -> list[Path]:
        """The roots that commands may write to; not those inside another one."""
        paths = [root.path for root in self.roots]
        return [
            root.path
            for root in self.roots
            if root.writable
            and not any(root.path.is_relative_to(path) for path in paths if path != root.path)
        ]

    @asynccontextmanager
    async def _granted(self, command: Command) -> AsyncGenerator[Command]:
        """The command with the network that the owner grants it, while the block runs."""
        grant = self.settings.grant
        if not command.network or grant is None or not self.settings.confined:
            yield command
            return
        async with grant() as granted:
            yield replace(
                command,
                argv=[*granted.prefix, *command.argv],
                binds=[*command.binds, *granted.binds],
                environment={**granted.environment, **command.environment},
            )

    async def _launch(
        self, command: Command, *, has_input: bool, overlays: Sequence[Overlay] = ()
    ) -> Launch:
        confined = self.settings.confined
        if confined and not (features := await self.features()).confines:
            if not (command.trusted and self.settings.trusts):
                raise features.unavailable()
            confined = False
        view = self._view(command, overlays)
        bwrap = self._bwrap if confined else None
        written = tuple(each.upper for each in overlays)
        limits = self.settings.limits
        return Launch(bwrap, command.argv, view, limits, has_input, written, command.trusted)

    def _view(self, command: Command, overlays: Sequence[Overlay] = ()) -> View:
        writable = not command.read_only
        roots = [Root(each.path, each.writable and writable) for each in self.roots]
        return View(
            roots=[*roots, *command.roots],
            programs=command.programs,
            binds=command.binds,
            environment={**_BASIC, **self.settings.environment, **command.environment},
            workdir=command.workdir or self.roots[0].path,
            overlays=overlays,
            tmp_mb=self.settings.limits.tmp_mb,
            hidden=self.settings.hidden,
        )

    async def _probe(self) -> Features:
        if self._bwrap is None:
            return without_bwrap()
        missing = [root.path for root in self.roots if not root.path.is_dir()]
        if missing:
            raise ToolError("not_found", f"there is no folder {missing[0]}")
        failed = await self._try(())
        if failed is not None:
            lacking, remedies = await anyio.to_thread.run_sync(explain_failure, failed)
            return Features(False, False, False, lacking, remedies)
        return Features(True, await self._probe_branches(), machine_filters())

    async def _probe_branches(self) -> bool:
        if self.settings.branches is None or not self.settings.confined:
            return False
        folder = self.settings.branches / f"probe-{new_id()}"
        try:
            overlays = await anyio.to_thread.run_sync(make_branch, folder, self.branched_roots())
            return await self._try(overlays) is None
        except OSError:
            return False
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_forget, folder)

    async def _try(self, overlays: Sequence[Overlay]) -> str | None:
        """What went wrong, in bwrap's words; None when it works."""
        command = Command(["true"], _PROBE_S)
        view = self._view(command, overlays)
        limits = Limits(disk_least_mb=0)  # a disk that is full just now says nothing
        launch = Launch(self._bwrap, command.argv, view, limits, has_input=False)
        try:
            done = await _finish(launch, command)
        except ToolError as error:
            return error.message
        return None if done.exit_code == 0 else done.output


async def _finish(launch: Launch, command: Command) -> Finished:
    return await finish(
        launch, command.stdin, timeout_s=command.timeout_s, most_chars=command.most_chars
    )


def _forget(probe: Path) -> None:
    """Remove what a probe left, and the folder for branches if there is nothing else in it."""
    with suppress(OSError):
        remove_tree(probe)
        probe.parent.rmdir()
