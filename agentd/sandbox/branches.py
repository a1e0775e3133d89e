"""Commands on a branch: they write to a folder of ours, which is merged when they have ended.

The order is what makes it safe to be killed anywhere: what is to run is noted, it runs, its outcome
is on the disk, then its changes are merged, and that is noted. Before the outcome stands, nothing
has happened; from then on everything has, and what is left of the merge can be done by anybody.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import structlog

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.private_files import sync
from agentd.sandbox.bubblewrap import Overlay, branch_of, make_branch
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished
from agentd.sandbox.limits import is_disk_limit
from agentd.sandbox.merge import merge, remove_tree

_log = structlog.get_logger()
_STARTED, _OUTCOME, _MERGED, _LOCK = "started.json", "outcome.json", "merged", "lock"
_HOLDER_S = 15.0  # another daemon that lost the run ends its command within this time
_LOOK_S = 0.1
# What an overlay does otherwise than a disk: a folder that was there can not be renamed, only moved
# by copying, and a file gets another number when it is linked. Most programs cope; these do not.
_MISFITS = ("Invalid cross-device link", "hardlink different from source")


@dataclass(frozen=True, slots=True)
class _Place:
    """The folder of one call: what was started, the branches of the roots, the outcome."""

    path: Path

    @property
    def trash(self) -> Path:
        return self.path / "trash"


class Branches(Capability):
    """`folder`: where the branches lie, best on the disk of the files themselves.

    `redact`: applied to what a command printed before it is written down or told.
    """

    def __init__(
        self,
        folder: Path,
        commands: Commands,
        clock: Clock,
        keep_s: float,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._folder = folder
        self._commands = commands
        self._clock = clock
        self._keep_s = keep_s
        self._redact = redact
        self._roots = commands.branched_roots()

    async def run(self, key: CallKey, command: Command) -> Finished:
        """Run it: on a branch where the machine can do that, else directly. Raises ToolError.

        Cancelled, none of its changes stay; ended by its time, they do, for it has a result.
        """
        if not (await self._commands.features()).branches:
            await self.note_direct(key)
            return await self._commands.run(command)
        place = self._place(key)
        await anyio.to_thread.run_sync(self._clear_siblings, key)
        async with _held(place):
            finished = await self._run(place, key, command)
        if finished is None:
            await self.note_direct(key)
            finished = await self._commands.run(command)
        return finished

    async def note_direct(self, key: CallKey) -> None:
        """Say that this call works on no branch: what a crash leaves of it nobody can know."""
        place = self._place(key)
        await anyio.to_thread.run_sync(self._clear_siblings, key)
        started = {"branch": False}
        await anyio.to_thread.run_sync(_write, place.path, _STARTED, started)

    async def reconcile(self, key: CallKey, command: Command) -> Finished | None:
        """What became of a call that was cut off; None: nothing happened. Raises ToolError."""
        place = self._place(key)
        if not place.path.is_dir():
            return None
        async with _held(place):
            started = _read(place.path / _STARTED)
            if started is None:
                return None
            if not started["branch"]:
                raise _unknown()
            if started["digest"] != _digest(command):
                return None  # of an earlier call that bore the same name
            return await anyio.to_thread.run_sync(self._settle, place, started)

    async def settle(self) -> None:
        """Finish or drop what processes that are gone have left; remove what is old."""
        await anyio.to_thread.run_sync(self._settle_all)

    async def _run(self, place: _Place, key: CallKey, command: Command) -> Finished | None:
        """None: it can not work on a branch, and nothing of it has happened."""
        roots = [str(root) for root in self._roots]
        started = {"branch": True, "digest": _digest(command), "roots": roots}
        forget = True
        try:
            overlays = await anyio.to_thread.run_sync(self._prepare, place, started)
            finished = await self._commands.run(command, overlays)
            finished = replace(finished, output=self._redact(finished.output))
            if any(sign in finished.output for sign in _MISFITS):
                return None
            forget = "/" not in key.text  # of no task: nobody will ask for it again
            with anyio.CancelScope(shield=True):
                try:
                    await anyio.to_thread.run_sync(self._keep, place, started, finished)
                except BaseException:
                    forget = False  # what could not be merged is tried again
                    raise
        finally:
            if forget:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(remove_tree, place.path)
        return finished

    def _prepare(self, place: _Place, started: Mapping[str, object]) -> list[Overlay]:
        _empty(place)
        overlays = make_branch(place.path, self._roots)
        _write(place.path, _STARTED, started, lasting=False)  # else nothing has happened
        return overlays

    def _keep(self, place: _Place, started: Mapping[str, Any], finished: Finished) -> None:
        if is_disk_limit(finished.exceeded):
            _empty(place, but=(_STARTED,))
        _write(place.path, _OUTCOME, asdict(finished))
        self._settle(place, started)

    def _settle(self, place: _Place, started: Mapping[str, Any]) -> Finished | None:
        """Finish the merge, if the command had ended; else drop its branch. By its holder."""
        outcome = _read(place.path / _OUTCOME)
        if outcome is None:
            _empty(place)
            return None
        if not (place.path / _MERGED).exists():
            place.trash.mkdir(exist_ok=True)
            for each in branch_of(place.path, [Path(root) for root in started["roots"]]):
                if each.root not in self._roots:
                    raise _not_merged(each.root, "it may not be written any more")
                if each.upper.is_dir():
                    _merge(each.upper, each.root, place.trash)
            _write(place.path, _MERGED, {}, lasting=False)  # else it is looked at again
        _empty(place, but=(_STARTED, _OUTCOME, _MERGED))
        return Finished(**outcome)

    def _settle_all(self) -> None:
        oldest = self._clock.now().timestamp() - self._keep_s
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            place = _Place(path)
            with suppress(BlockingIOError), _lock(place):
                try:
                    started = _read(path / _STARTED)
                    if started is not None and started["branch"]:
                        self._settle(place, started)
                    if path.stat().st_mtime < oldest or started is None:
                        remove_tree(path)
                except (OSError, ToolError, ValueError) as error:
                    _log.error("a branch could not be settled", path=str(path), error=str(error))

    def _place(self, key: CallKey) -> _Place:
        return _Place(self._folder / f"{_task_name(key)}{_sha(key.text)[:32]}")

    def _clear_siblings(self, key: CallKey) -> None:
        """Calls of a task come one after another, so the earlier ones have their results."""
        own = self._place(key).path
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob(f"{_task_name(key)}*"):
            if path != own and (not (path / _OUTCOME).exists() or (path / _MERGED).exists()):
                with suppress(OSError), _lock(_Place(path)):
                    remove_tree(path)


@contextmanager
def _lock(place: _Place) -> Generator[None]:
    """Be the only one at it, among all processes. Raises BlockingIOError."""
    place.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(place.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


@asynccontextmanager
async def _held(place: _Place) -> AsyncGenerator[None]:
    """As `_lock`, but wait for a process that is about to end. Raises ToolError."""
    with ExitStack() as stack:
        patience = anyio.current_time() + _HOLDER_S
        while True:
            try:
                stack.enter_context(_lock(place))
                break
            except BlockingIOError:
                if anyio.current_time() > patience:
                    raise _unknown() from None
            await anyio.sleep(_LOOK_S)
        yield


def _merge(upper: Path, root: Path, trash: Path) -> None:
    try:
        merge(upper, root, trash)
    except OSError as error:
        raise _not_merged(root, str(error)) from error


def _not_merged(root: Path, why: str) -> ToolError:
    return ToolError(
        "changes_not_merged",
        f"the command ended, but not all of its changes could be brought into {root}: {why}",
        next_action_hint="Look at what is there before going on. The rest is tried again when the "
        "daemon starts.",
    )


def _empty(place: _Place, but: Sequence[str] = ()) -> None:
    for entry in list(place.path.iterdir()) if place.path.is_dir() else ():
        if entry.name in (_LOCK, *but):
            continue
        if entry.is_dir():
            remove_tree(entry)
        else:
            entry.unlink()


def _write(folder: Path, name: str, value: object, *, lasting: bool = True) -> None:
    """So that it is there whole, or not at all. `lasting`: even after a power cut."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = folder / f"{name}.new"
    new.touch(mode=0o600)
    with new.open("w") as file:
        json.dump(value, file)
        file.flush()
        if lasting:
            os.fsync(file.fileno())
    new.rename(folder / name)
    if lasting:
        sync(folder)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _digest(command: Command) -> str:
    facts = [list(command.argv), str(command.workdir), dict(command.environment)]
    return _sha(json.dumps(facts, sort_keys=True) + command.stdin.hex())


def _task_name(key: CallKey) -> str:
    task, slash, _ = key.text.rpartition("/")
    return f"{_sha(task)[:16] if slash else 'single'}-"


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _unknown() -> ToolError:
    return ToolError(
        "outcome_unknown",
        "The daemon stopped while the command was running, and it did not work on a branch of the "
        "files. Whether it took effect is unknown; it was not repeated.",
        next_action_hint="Find out whether it happened (look at what it would have changed) before "
        "repeating it.",
    )
