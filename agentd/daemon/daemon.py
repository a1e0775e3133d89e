"""One `agentd run`: it registers itself, starts its services and stops them in order."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog

from agentd import __version__
from agentd.daemon.leases import Heartbeat, Watch
from agentd.daemon.notify import Notifier
from agentd.daemon.presence import Presence, forget
from agentd.daemon.reaper import Reaper
from agentd.daemon.retention import Retention
from agentd.daemon.scheduler import Scheduler
from agentd.daemon.signals import watch_signals
from agentd.daemon.supervisor import Supervisor, Until
from agentd.daemon.wake import Wake
from agentd.daemon.watchdog import Watchdog
from agentd.daemon.worker import Worker
from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError
from agentd.domain.ids import DaemonId, new_id
from agentd.domain.news import News
from agentd.store.daemons import DaemonStore
from agentd.store.leases import LeaseStore
from agentd.store.runs import RunStore

_log = structlog.get_logger()


MakeScheduler = Callable[[DaemonId, anyio.Event], Scheduler]


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    concurrency: int
    poll_s: float
    drain_s: float
    heartbeat_s: float = 15.0
    lease_s: float = 60.0
    reap_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """`run_directory` holds the sockets, locks and health files of the daemons of this home."""

    run_directory: Path
    daemons: DaemonStore
    runs: RunStore
    leases: LeaseStore
    worker: Worker
    clock: Clock
    settings: DaemonSettings
    stopping: anyio.Event
    untouched: Callable[[], bool]
    make_scheduler: MakeScheduler
    watchdog: Watchdog
    notifier: Notifier
    retention: Retention | None = None

    async def run(self, until: Until = Until.STOPPED) -> int:
        """Work until `until` or a signal. The number of tasks that were claimed."""
        daemon_id = DaemonId(new_id())
        with Presence(self.run_directory, daemon_id):
            async with Wake(self.run_directory, daemon_id) as wake:
                await self._register(daemon_id)
                supervisor = self._supervisor(daemon_id, until)
                reaper = self._reaper(daemon_id)
                heartbeat = Heartbeat(daemon_id, self.leases, supervisor, self.settings.heartbeat_s)
                try:
                    await reaper.reap()
                    async with anyio.create_task_group() as services:
                        services.start_soon(watch_signals, self.stopping)
                        services.start_soon(reaper.run)
                        services.start_soon(heartbeat.run)
                        services.start_soon(self.watchdog.run, daemon_id, self.stopping)
                        services.start_soon(
                            self.notifier.run, self.stopping, lambda: self.watchdog.well
                        )
                        if self.retention is not None:
                            services.start_soon(self.retention.run, self.stopping)
                        scheduler = self.make_scheduler(daemon_id, self.stopping)
                        if until is Until.STOPPED:
                            services.start_soon(scheduler.run)
                        services.start_soon(_listen, wake, supervisor, scheduler)
                        self.notifier.ready()
                        await supervisor.run()
                        services.cancel_scope.cancel()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._unregister(daemon_id)
        return supervisor.worked

    def _supervisor(self, daemon_id: DaemonId, until: Until) -> Supervisor:
        return Supervisor(
            daemon_id=daemon_id,
            runs=self.runs,
            worker=self.worker,
            clock=self.clock,
            stopping=self.stopping,
            untouched=self.untouched,
            concurrency=self.settings.concurrency,
            poll_s=self.settings.poll_s,
            drain_s=self.settings.drain_s,
            until=until,
        )

    def _reaper(self, daemon_id: DaemonId) -> Reaper:
        reap_s = self.settings.reap_s
        return Reaper(
            own=daemon_id,
            run_directory=self.run_directory,
            daemons=self.daemons,
            leases=self.leases,
            # A lease is seen unrenewed several times before it counts as run out.
            watch=Watch(self.settings.lease_s, min(2 * reap_s, self.settings.lease_s / 3)),
            clock=self.clock,
            every_s=reap_s,
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
            await self.leases.take_over([daemon_id])
            await self.daemons.stopped([daemon_id])
            forget(self.run_directory, daemon_id)
        except (StoreError, OSError) as error:
            _log.error("could not sign off", error=str(error))
        _log.info("daemon stopped", daemon=daemon_id)


async def _listen(wake: Wake, supervisor: Supervisor, scheduler: Scheduler) -> None:
    """Pass on what was written. Runs until cancelled."""
    while True:
        news = await wake.wait(timeout_s=60.0)
        if news:
            supervisor.notice()
        if news is News.SCHEDULES:
            scheduler.notice()
