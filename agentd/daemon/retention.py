"""Moves old sessions to the archive from time to time, so that the database stays small."""

from datetime import timedelta

import anyio
import structlog

from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError
from agentd.store.archives import ArchiveStore

_log = structlog.get_logger()
_FIRST_AFTER_S = 60.0  # what a fresh daemon has to do first is work


class Retention:
    def __init__(
        self, archives: ArchiveStore, clock: Clock, *, keep: timedelta, every_s: float
    ) -> None:
        self._archives = archives
        self._clock = clock
        self._keep = keep
        self._every_s = every_s

    async def run(self, stopping: anyio.Event) -> None:
        """Prune now and then until `stopping`. A failure is logged; the next round tries again."""
        wait_s = min(_FIRST_AFTER_S, self._every_s)
        while True:
            with anyio.move_on_after(wait_s):
                await stopping.wait()
                return
            try:
                await self.prune()
            except (StoreError, OSError) as error:
                _log.error("old sessions could not be moved to the archive", error=str(error))
            wait_s = self._every_s

    async def prune(self) -> None:
        """Once."""
        done = await self._archives.prune(self._clock.now() - self._keep)
        if done.sessions:
            _log.info("moved old sessions to the archive", sessions=done.sessions, tasks=done.tasks)
