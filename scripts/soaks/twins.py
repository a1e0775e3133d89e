"""Two daemons on one home. The first lives to the end and is measured; the second suffers."""

import itertools
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import Process

from scripts.soaks.load import ILLS, Model
from tests.processes import Home

_END_S = 40.0
_AFTERMATH_S = 0.5  # what a fault has held up is worked off in this time


@dataclass
class Twins:
    """`lasting_s`: of a fault that is undone again. `codes`: exit codes of those asked to stop."""

    home: Home
    folder: Path
    model: Model
    first: Process
    second: Process
    lasting_s: float = 2.0
    faults: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    codes: list[int] = field(default_factory=list[int])

    async def suffer(self, every_s: float, is_over: Callable[[], bool]) -> None:
        """One fault after another, with a pause between them, until `is_over`."""
        ills = {name: partial(self._model_is_ill, name) for name in ILLS}
        harms: dict[str, Callable[[], Awaitable[None]]] = {
            "kill -9": self._kill,
            "SIGTERM and restart": self._restart,
            "SIGSTOP of the second": partial(self._stop, lambda: self.second),
            "SIGSTOP of the first": partial(self._stop, lambda: self.first),
            **ills,
        }
        for name in itertools.cycle(harms):
            await anyio.sleep(every_s)
            if is_over():
                return
            before_s = time.monotonic()
            await harms[name]()
            self.faults.append((name, before_s, time.monotonic()))

    def is_quiet(self, monotonic_s: float) -> bool:
        """Whether no fault was at work then."""
        return not any(a <= monotonic_s <= b + _AFTERMATH_S for _, a, b in self.faults)

    async def end(self) -> None:
        """Ask both to stop."""
        for process in (self.first, self.second):
            process.terminate()
            with anyio.fail_after(_END_S):
                self.codes.append(await process.wait())

    async def _kill(self) -> None:
        self.second.kill()
        await self.second.wait()
        self.second = await _start(self.home, self.folder, "second")

    async def _restart(self) -> None:
        self.second.terminate()
        with anyio.fail_after(_END_S):
            self.codes.append(await self.second.wait())
        self.second = await _start(self.home, self.folder, "second")

    async def _stop(self, which: Callable[[], Process]) -> None:
        process = which()
        process.send_signal(signal.SIGSTOP)
        await anyio.sleep(self.lasting_s)
        process.send_signal(signal.SIGCONT)

    async def _model_is_ill(self, name: str) -> None:
        self.model.ill = ILLS[name]
        await anyio.sleep(self.lasting_s)
        self.model.ill = None


@asynccontextmanager
async def two_daemons(home: Home, folder: Path, model: Model) -> AsyncGenerator[Twins]:
    """Killed after the block if they are still there."""
    first = await _start(home, folder, "first")
    twins = Twins(home, folder, model, first, await _start(home, folder, "second"))
    try:
        yield twins
    finally:
        with anyio.CancelScope(shield=True):
            for process in (twins.first, twins.second):
                if process.returncode is None:
                    process.kill()
                await process.wait()


async def _start(home: Home, folder: Path, name: str) -> Process:
    """Its log goes to a file: a pipe that nobody reads would hold it up."""
    with (folder / f"{name}.log").open("ab") as log:
        return await anyio.open_process(
            home.command("run"), env=home.environment, stdout=subprocess.DEVNULL, stderr=log
        )
