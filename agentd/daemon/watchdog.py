"""Looks at this process again and again, and writes down how well it is."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import structlog

from agentd import __version__
from agentd.daemon.checks import Bounds, Seen, calls_for_restart, judge
from agentd.daemon.health_files import write_health
from agentd.daemon.probe import DatabaseProbe
from agentd.daemon.vitals import LagMeter, Vitals, measure
from agentd.domain.clock import Clock
from agentd.domain.health import Check, Health, Wellness
from agentd.domain.ids import DaemonId

_log = structlog.get_logger()
_MEASURE_S = 10.0  # a disk that hangs must not hang the watchdog


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a watchdog looks. `ask_database` runs a trivial transaction; `untouched`: see Store."""

    home: Path
    run_directory: Path
    ask_database: Callable[[], Awaitable[None]]
    untouched: Callable[[], bool]
    breaker_states: Callable[[], Mapping[str, str]]
    clock: Clock


@dataclass
class Watchdog:
    """`tell` is given a line about this daemon's state whenever that has changed."""

    sources: Sources
    bounds: Bounds
    interval_s: float
    first_s: float
    tell: Callable[[str], None] = lambda _: None
    _states: dict[str, Wellness] = field(default_factory=dict[str, Wellness])
    _needs_restart: bool = False
    _unwritten: str = ""

    @property
    def well(self) -> bool:
        """False when something fails that only a new process would mend."""
        return not self._needs_restart

    async def run(self, daemon_id: DaemonId, stopping: anyio.Event) -> None:
        """Until cancelled: a daemon that drains is watched, too."""
        sources, clock = self.sources, self.sources.clock
        started_s = clock.monotonic()
        lag = LagMeter(clock)
        database = DatabaseProbe(
            sources.ask_database, sources.untouched, clock, self.bounds.database_fail_s
        )
        async with anyio.create_task_group() as group:
            group.start_soon(lag.run)
            await anyio.sleep(self.first_s)
            while True:
                try:
                    seen = Seen(
                        vitals=await self._measure(),
                        lag=lag.take(),
                        database=await database.answer(group),
                        breakers=sources.breaker_states(),
                        uptime_s=round(clock.monotonic() - started_s, 1),
                    )
                    phase = "draining" if stopping.is_set() else "working"
                    await self.note(daemon_id, seen, phase)
                except Exception:  # noqa: BLE001 - whatever it was, the work goes on
                    _log.exception("the watchdog could not look")
                await anyio.sleep(self.interval_s)

    async def note(self, daemon_id: DaemonId, seen: Seen, phase: str) -> Health:
        """Judge what was seen, log what has changed, and write it down for others."""
        clock = self.sources.clock
        health = Health(
            daemon=daemon_id,
            pid=os.getpid(),
            host=socket.gethostname(),
            version=__version__,
            phase=phase,
            looked_at=clock.now(),
            monotonic_s=clock.monotonic(),
            interval_s=self.interval_s,
            uptime_s=seen.uptime_s,
            checks=judge(seen, self.bounds),
            breakers=dict(seen.breakers),
        )
        self._needs_restart = any(calls_for_restart(each) for each in health.checks)
        self._log_changes(health.checks)
        self.tell(health.troubles() or phase)
        await self._write(health)
        return health

    def _log_changes(self, checks: tuple[Check, ...]) -> None:
        for each in checks:
            before = self._states.get(each.name, Wellness.OK)
            self._states[each.name] = each.state
            if each.state is before:
                continue
            levels = {Wellness.OK: _log.info, Wellness.WARN: _log.warning}
            say = levels.get(each.state, _log.error)
            say("watchdog", check=each.name, state=str(each.state), text=each.text)

    async def _measure(self) -> Vitals:
        with anyio.move_on_after(_MEASURE_S):
            return await anyio.to_thread.run_sync(
                measure, self.sources.home, abandon_on_cancel=True
            )
        return Vitals(None, None, None, 0)

    async def _write(self, health: Health) -> None:
        trouble = ""
        try:
            # Not abandoned: a file that is written after the daemon signed off would stay for ever.
            await anyio.to_thread.run_sync(write_health, self.sources.run_directory, health)
        except OSError as error:
            trouble = error.strerror or str(error)
        if trouble and trouble != self._unwritten:
            _log.error("the health file could not be written", error=trouble)
        self._unwritten = trouble
