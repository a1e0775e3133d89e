"""Fires what is due. Any number of daemons may: each occurrence is settled by one transaction."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import anyio
import structlog
from anyio.abc import TaskGroup

from agentd.domain.clock import Clock
from agentd.domain.errors import AgentdError, Refused, StoreError
from agentd.domain.ids import DaemonId, ScheduleId
from agentd.domain.schedule import Occurrence, Outcome, Schedule
from agentd.schedules.backlog import Backlog, Rules, backlog
from agentd.schedules.scheduling import trigger_of
from agentd.store.schedules import ScheduleStore

_log = structlog.get_logger()
_TICK_S = 15.0  # a clock that was set, or a machine that slept, is noticed so soon
_READ_ANYWAY_S = 60.0  # although nobody said that a schedule changed
_READ_GAP_S = 0.2  # between two looks, however much is changed
_ERROR_PAUSE_S = 2.0


@dataclass(slots=True)
class Scheduler:
    """`ask_gate`: None, or why an occurrence is not to be run. The rest: see `Rules`."""

    daemon_id: DaemonId
    schedules: ScheduleStore
    clock: Clock
    stopping: anyio.Event
    ask_gate: Callable[[str], Awaitable[str | None]]
    late_s: float
    backlog_most: int
    _news: anyio.Event = field(default_factory=anyio.Event)
    _busy: set[ScheduleId] = field(default_factory=set[ScheduleId])
    _unreadable: dict[ScheduleId, datetime] = field(default_factory=dict[ScheduleId, datetime])

    def notice(self) -> None:
        """Somebody wrote: a schedule may have changed."""
        self._news.set()

    async def run(self) -> None:
        """Until stopping, or cancelled."""
        async with anyio.create_task_group() as settling:
            while not self.stopping.is_set():
                self._news = anyio.Event()
                read_at = self.clock.monotonic()
                await self._wait(await self._look(settling), read_at)
            settling.cancel_scope.cancel()

    async def _look(self, settling: TaskGroup) -> Sequence[Schedule]:
        """Start to settle what is due; those that are due later."""
        try:
            awake = await self.schedules.awake()
        except (StoreError, OSError) as error:
            _log.error("could not read the schedules", error=str(error))
            return []
        now = self.clock.now()
        later: list[Schedule] = []
        for each in awake:
            if each.id in self._busy or self._unreadable.get(each.id) == each.updated_at:
                continue
            if each.next_due is None or each.next_due > now:
                later.append(each)
                continue
            self._busy.add(each.id)
            settling.start_soon(self._settle, each)
        return later

    async def _wait(self, later: Sequence[Schedule], read_at: float) -> None:
        """Until something is due, or may have changed."""
        due = min((each.next_due for each in later if each.next_due), default=None)
        while not self.stopping.is_set():
            patience_s = _TICK_S
            if due is not None:
                patience_s = min(_TICK_S, max(0.0, (due - self.clock.now()).total_seconds()))
            with anyio.move_on_after(patience_s):
                await self._news.wait()
            read_s = self.clock.monotonic() - read_at
            if due is not None and due <= self.clock.now():
                return
            if self._news.is_set():
                await anyio.sleep(max(0.0, _READ_GAP_S - read_s))
                return
            if read_s >= _READ_ANYWAY_S:
                return

    async def _settle(self, schedule: Schedule) -> None:
        try:
            await self._fire(schedule)
        except Refused as error:
            self._unreadable[schedule.id] = schedule.updated_at
            _log.error("a schedule can not be read", schedule=schedule.id, error=error.message)
        except (AgentdError, OSError) as error:
            _log.error("a schedule could not be fired yet", schedule=schedule.id, error=str(error))
            await anyio.sleep(_ERROR_PAUSE_S)
        except Exception:  # noqa: BLE001 - one bad schedule is one bad schedule
            self._unreadable[schedule.id] = schedule.updated_at
            _log.exception("a schedule can not be fired", schedule=schedule.id)
        finally:
            self._busy.discard(schedule.id)
            self._news.set()

    async def _fire(self, schedule: Schedule) -> None:
        assert schedule.next_due is not None
        trigger, now = trigger_of(schedule), self.clock.now()
        rules = Rules(schedule.missed, self.late_s, self.backlog_most)
        found = await anyio.to_thread.run_sync(backlog, trigger, schedule.next_due, now, rules)
        decided = [*found.missed, *await self._judge(schedule, found)]
        settled = await self.schedules.settle(schedule, decided, found.next_due, self.daemon_id)
        for each in settled or ():
            occurrence = each.occurrence
            _log.info(
                "occurrence",
                schedule=schedule.id,
                due=occurrence.due_at.isoformat(),
                outcome=str(occurrence.outcome),
                reason=occurrence.reason,
                task=each.task_id,
            )

    async def _judge(self, schedule: Schedule, found: Backlog) -> list[Occurrence]:
        """What becomes of those that are to be fired: the gate is asked once for all of them."""
        reason = await self.ask_gate(schedule.gate) if schedule.gate and found.fire else None
        outcome = Outcome.FIRED if reason is None else Outcome.GATED
        return [Occurrence(due, outcome, reason) for due in found.fire]
