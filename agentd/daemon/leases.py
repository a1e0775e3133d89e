"""Leases: a daemon renews its own, and watches those of others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import anyio
import structlog

from agentd.daemon.worker import Assignment
from agentd.domain.errors import StoreError
from agentd.domain.ids import DaemonId, RunId
from agentd.store.leases import Held, LeaseStore

_log = structlog.get_logger()


class Workers(Protocol):
    """Whoever knows what this daemon works on."""

    def active(self) -> Collection[Assignment]: ...


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Renews the leases of this daemon's runs, and stops those that are no longer its own."""

    daemon_id: DaemonId
    leases: LeaseStore
    workers: Workers
    every_s: float

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await anyio.sleep(self.every_s)
            try:
                await self.beat()
            except (StoreError, OSError) as error:
                _log.error("could not renew the leases", error=str(error))

    async def beat(self) -> None:
        """Once. Without a run there is nothing to renew, and the database is left alone."""
        working = list(self.workers.active())
        if not working:
            return
        kept = await self.leases.renew(self.daemon_id)
        for each in working:
            run = each.claim.run
            if (run.task_id, run.token) not in kept:
                each.lose()


@dataclass(slots=True)
class _Seen:
    until: datetime | None
    looked_at: float
    still_s: float = 0.0


@dataclass(slots=True)
class Watch:
    """Which leases of others have run out, by this process's own steady clock.

    Times of day are never compared, so a clock that jumps ends no lease: what counts is for how
    long a lease was seen unrenewed. A pause between two looks counts for `step_s` at the most:
    after a suspended machine wakes, its daemons have the time to renew.
    """

    lease_s: float
    step_s: float
    _seen: dict[RunId, _Seen] = field(default_factory=dict[RunId, _Seen])

    def expired(self, held: Sequence[Held], at: float) -> dict[RunId, datetime | None]:
        """Runs whose lease has run out, with its end. `held`: of others. `at`: steady seconds."""
        seen = {each.run.id: self._look_at(each, at) for each in held}
        self._seen = seen
        return {run_id: each.until for run_id, each in seen.items() if each.still_s >= self.lease_s}

    def _look_at(self, held: Held, at: float) -> _Seen:
        before = self._seen.get(held.run.id)
        if before is None or before.until != held.until:
            return _Seen(held.until, at)
        passed_s = min(at - before.looked_at, self.step_s)
        return _Seen(held.until, at, before.still_s + passed_s)
