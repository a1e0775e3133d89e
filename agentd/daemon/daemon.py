"""One `agentd run`: it registers itself, starts its services and stops them in order."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog

from agentd import __version__
from agentd.daemon.notify import Notifier
from agentd.daemon.presence import Presence, forget
from agentd.daemon.reaper import Reaper
from agentd.daemon.signals import watch_signals
from agentd.daemon.supervisor import Supervisor, Until
from agentd.daemon.wake import Wake
from agentd.daemon.watchdog import Watchdog
from agentd.daemon.worker import Worker
from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError
from agentd.domain.ids import DaemonId, new_id
from agentd.store.daemons import DaemonStore
from agentd.store.runs import RunStore

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    concurrency: int
    poll_s: float
    drain_s: float


@dataclass(frozen=True, slots=True)
class Daemon:
    """`run_directory` holds the sockets, locks and health files of the daemons of this home."""

    run_directory: Path
    daemons: DaemonStore
    runs: RunStore
    worker: Worker
    clock: Clock
    settings: DaemonSettings
    stopping: anyio.Event
    untouched: Callable[[], bool]
    watchdog: Watchdog
    notifier: Notifier

    async def run(self, until: Until = Until.STOPPED) -> int:
        """Work until `until` or a signal. The number of tasks that were claimed."""
        daemon_id = DaemonId(new_id())
        with Presence(self.run_directory, daemon_id):
            async with Wake(self.run_directory, daemon_id) as wake:
                await self._register(daemon_id)
                supervisor = self._supervisor(daemon_id, wake, until)
                reaper = Reaper(daemon_id, self.run_directory, self.daemons, self.runs)
                try:
                    await reaper.reap()
                    async with anyio.create_task_group() as services:
                        services.start_soon(watch_signals, self.stopping)
                        services.start_soon(reaper.run, self.stopping)
                        services.start_soon(self.watchdog.run, daemon_id, self.stopping)
                        services.start_soon(
                            self.notifier.run, self.stopping, lambda: self.watchdog.well
                        )
                        self.notifier.ready()
                        await supervisor.run()
                        services.cancel_scope.cancel()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._unregister(daemon_id)
        return supervisor.worked

    def _supervisor(self, daemon_id: DaemonId, wake: Wake, until: Until) -> Supervisor:
        return Supervisor(
            daemon_id=daemon_id,
            runs=self.runs,
            worker=self.worker,
            wake=wake,
            clock=self.clock,
            stopping=self.stopping,
            untouched=self.untouched,
            concurrency=self.settings.concurrency,
            poll_s=self.settings.poll_s,
            drain_s=self.settings.drain_s,
            until=until,
        )

    async def _register(self, daemon_id: DaemonId) -> None:
        await self.daemons.register(
            daemon_id,
            pid=os.getpid(),
            host=socket.gethostname(),
            version=__version__,
            concurrency=self.settings.concurrency,
        )
        _log.info(
            "daemon started",
            daemon=daemon_id,
            pid=os.getpid(),
            concurrency=self.settings.concurrency,
        )

    async def _unregister(self, daemon_id: DaemonId) -> None:
        try:
            # A worker that could not say how its run ended leaves it running: then it goes back.
            await self.runs.take_over([daemon_id])
            await self.daemons.stopped([daemon_id])
            forget(self.run_directory, daemon_id)
        except StoreError as error:
            _log.error("could not sign off", error=error.message)
        _log.info("daemon stopped", daemon=daemon_id)
