"""Looks at the queue, claims what there is room for, and owns the workers."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import anyio
import structlog
from anyio.abc import TaskGroup

from agentd.daemon.worker import Assignment, Worker
from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError, StoreUnusable
from agentd.domain.ids import DaemonId, RunId
from agentd.store.runs import Claim, Glance, RunStore

_log = structlog.get_logger()
_LOOK_ANYWAY_S = 60.0  # although nobody seems to have written: trust is good


class Until(StrEnum):
    """When the supervisor stops by itself."""

    STOPPED = "stopped"  # never: a signal ends it
    DRAINED = "drained"  # nothing is left that could be worked now
    ONE = "one"  # one task was worked, or there was none


@dataclass
class Supervisor:
    daemon_id: DaemonId
    runs: RunStore
    worker: Worker
    clock: Clock
    stopping: anyio.Event
    untouched: Callable[[], bool]
    concurrency: int
    poll_s: float
    drain_s: float
    until: Until = Until.STOPPED

    def __post_init__(self) -> None:
        self._active: dict[RunId, Assignment] = {}
        self._attention = anyio.Event()
        self.worked = 0

    def notice(self) -> None:
        """Somebody wrote: the queue may have changed."""
        self._attention.set()

    def active(self) -> Collection[Assignment]:
        """What is being worked now."""
        return self._active.values()

    async def run(self) -> None:
        """Until stopped or, as `until` says, done; then drain. Raises StoreUnusable."""
        async with anyio.create_task_group() as listeners:
            listeners.start_soon(self._heed_stop)
            async with anyio.create_task_group() as workers:
                await self._work_queue(workers)
                await self._drain()
            listeners.cancel_scope.cancel()

    async def _work_queue(self, workers: TaskGroup) -> None:
        while not self.stopping.is_set():
            self._attention = anyio.Event()
            idle = not self._active
            glance = await self._look(self._room())
            if glance is None:
                await self._pause()
                continue
            for claim in glance.claims:
                self._start(workers, claim)
            self._pass_on(glance)
            if idle and self._is_done(glance):
                return
            await self._wait(glance.next_due)

    async def _wait(self, next_due: datetime | None) -> None:
        """Until somebody says that there is news, there may be some unsaid, or something is due."""
        looked_at = self.clock.monotonic()
        while not self._attention.is_set():
            with anyio.move_on_after(self._patience_s(next_due)):
                await self._attention.wait()
            due = next_due is not None and next_due <= self.clock.now()
            rested = self.clock.monotonic() - looked_at < _LOOK_ANYWAY_S and self.untouched()
            if due or not rested:
                return

    def _room(self) -> int:
        """How many tasks may be claimed now."""
        room = self.concurrency - len(self._active)
        return min(room, 1 - self.worked) if self.until is Until.ONE else room

    async def _look(self, limit: int) -> Glance | None:
        """None when the database can not be asked now."""
        try:
            return await self.runs.glance(self.daemon_id, limit=limit)
        except StoreUnusable:
            self.stopping.set()
            raise
        except StoreError as error:
            _log.error("could not look at the queue", error=error.message, hint=error.hint)
            return None

    async def _pause(self) -> None:
        with anyio.move_on_after(self.poll_s):
            await self.stopping.wait()

    def _start(self, workers: TaskGroup, claim: Claim) -> None:
        assignment = Assignment(claim, self.stopping)
        for earlier in self._active.values():
            if earlier.claim.task.id == claim.task.id:
                earlier.lose()  # its lease had run out, and the task came back to this daemon
        self._active[claim.run.id] = assignment
        self.worked += 1
        workers.start_soon(self._work, assignment)

    async def _work(self, assignment: Assignment) -> None:
        try:
            await self.worker.work(assignment)
        finally:
            del self._active[assignment.claim.run.id]
            self._attention.set()

    def _pass_on(self, glance: Glance) -> None:
        for assignment in self._active.values():
            if assignment.claim.task.id in glance.to_cancel and not assignment.cancelled:
                assignment.cancel()
        for assignment in self._active.values():
            if assignment.claim.run.session_id in glance.with_messages:
                assignment.inbox.set()

    def _is_done(self, glance: Glance) -> bool:
        """After a look while no task was running: an ending one may have freed its successors."""
        if self.until is Until.STOPPED or self._active:
            return False
        return not glance.claims or self.until is Until.ONE

    def _patience_s(self, next_due: datetime | None) -> float:
        """How long nothing can happen that nobody would tell."""
        if next_due is None:
            return self.poll_s
        return min(self.poll_s, max(0.0, (next_due - self.clock.now()).total_seconds()))

    async def _heed_stop(self) -> None:
        await self.stopping.wait()
        self._attention.set()

    async def _drain(self) -> None:
        """Let running calls end within `drain_s`; what is left then is cut off and put back."""
        with anyio.move_on_after(self.drain_s):
            while self._active:
                self._attention = anyio.Event()
                glance = await self._look(0)
                if glance is None:
                    await anyio.sleep(self.poll_s)
                    continue
                self._pass_on(glance)
                await self._attention.wait()
        for assignment in self._active.values():
            assignment.scope.cancel()
