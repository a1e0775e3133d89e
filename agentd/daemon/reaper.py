"""Puts back what daemons that died or hang left running, so that it is claimed again."""

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import structlog

from agentd.daemon.leases import Watch
from agentd.daemon.presence import alive_ones, dead_ones, forget, is_alive
from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError
from agentd.domain.ids import DaemonId
from agentd.store.daemons import DaemonStore
from agentd.store.leases import LeaseStore

_log = structlog.get_logger()
_LOCKS_EVERY_S = 5.0  # a death is seen in the lock at once; this is how often somebody looks


@dataclass(slots=True)
class Reaper:
    """`every_s`: seconds between two looks at the leases."""

    own: DaemonId
    run_directory: Path
    daemons: DaemonStore
    leases: LeaseStore
    watch: Watch
    clock: Clock
    every_s: float
    _settled: set[DaemonId] = field(default_factory=set[DaemonId])

    async def run(self) -> None:
        """Look again and again until cancelled; at the locks only, while nobody else works."""
        looked_at = self.clock.monotonic()
        while True:
            await anyio.sleep(min(_LOCKS_EVERY_S, self.every_s))
            try:
                await self._bury()
                if self.clock.monotonic() - looked_at >= self.every_s:
                    looked_at = self.clock.monotonic()
                    await self.look_at_leases()
            except (StoreError, OSError) as error:
                _log.error("could not look for lost runs", error=str(error))

    async def reap(self) -> None:
        """Once: whoever holds no lock any more is dead; its tasks go back into the queue."""
        known = await self.daemons.not_stopped()
        others = [each for each in known if each != self.own]
        dead = [each for each in others if not is_alive(self.run_directory, each)]
        if not dead:
            return
        taken = await self.leases.take_over(dead)
        await self.daemons.stopped(dead)
        for each in dead:
            forget(self.run_directory, each)
        _log.warning("took over from dead daemons", daemons=dead, tasks=len(taken))

    async def look_at_leases(self) -> None:
        """Once: take over runs whose daemon lives by its lock, but has stopped to renew them."""
        if not alive_ones(self.run_directory) - {self.own}:
            return
        held = await self.leases.running()
        others = [each for each in held if each.run.daemon_id != self.own]
        expired = self.watch.expired(others, self.clock.monotonic())
        if expired:
            taken = await self.leases.take_over((), expired)
            _log.warning("took over from daemons that hang", runs=list(expired), tasks=len(taken))

    async def _bury(self) -> None:
        dead = dead_ones(self.run_directory) - self._settled
        if dead:
            await self.reap()
            self._settled |= dead
