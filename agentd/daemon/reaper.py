"""Puts back what daemons that died left running, so that it is claimed again."""

from pathlib import Path

import anyio
import structlog

from agentd.daemon.presence import dead_ones, forget, is_alive
from agentd.domain.errors import StoreError
from agentd.domain.ids import DaemonId
from agentd.store.daemons import DaemonStore
from agentd.store.runs import RunStore

_log = structlog.get_logger()
EVERY_S = 5.0  # a death is seen in the lock at once; this is how often somebody looks


class Reaper:
    def __init__(
        self, own: DaemonId, run_directory: Path, daemons: DaemonStore, runs: RunStore
    ) -> None:
        self._own = own
        self._run_directory = run_directory
        self._daemons = daemons
        self._runs = runs
        self._settled: set[DaemonId] = set()

    async def run(self, stopping: anyio.Event) -> None:
        """Look again and again until `stopping`; at the locks only, while nobody has died."""
        while not stopping.is_set():
            dead = dead_ones(self._run_directory) - self._settled
            if dead:
                try:
                    await self.reap()
                    self._settled |= dead
                except StoreError as error:
                    _log.error("could not look for dead daemons", error=error.message)
            with anyio.move_on_after(EVERY_S):
                await stopping.wait()

    async def reap(self) -> None:
        """Once: whoever holds no lock any more is dead; its tasks go back into the queue."""
        known = await self._daemons.not_stopped()
        others = [each for each in known if each != self._own]
        dead = [each for each in others if not is_alive(self._run_directory, each)]
        if not dead:
            return
        taken = await self._runs.take_over(dead)
        await self._daemons.stopped(dead)
        for each in dead:
            forget(self._run_directory, each)
        _log.warning("took over from dead daemons", daemons=dead, tasks=len(taken))
