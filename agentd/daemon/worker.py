"""One claimed task, from its claim to its ending. Whatever happens, the task ends up somewhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import structlog
from structlog.contextvars import bound_contextvars

from agentd.agent.endings import failed_by
from agentd.agent.loop import Interrupted, Loop
from agentd.domain.errors import AgentdError, RunLost, StoreError
from agentd.domain.run import Run
from agentd.domain.task import TaskState
from agentd.store.runs import CANCELLED, Claim, Ending, RunStore

_log = structlog.get_logger()
_SETTLE_AGAIN_S = 2.0


@dataclass(slots=True)
class Assignment:
    """A claim being worked, and the ways to reach its worker.

    `cancelled`: a person wants the task to end. `lost`: it is no longer this run's. Else a
    cancelled `scope` puts it back.
    """

    claim: Claim
    stopping: anyio.Event
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    inbox: anyio.Event = field(default_factory=anyio.Event)
    cancelled: bool = False
    lost: bool = False

    def cancel(self) -> None:
        """End the run, and the task with it."""
        self.cancelled = True
        self.scope.cancel()

    def lose(self) -> None:
        """End the run without a word: what becomes of the task is no longer its business."""
        self.lost = True
        self.scope.cancel()


MakeLoop = Callable[[Assignment], Loop]


class RunEnded(Protocol):
    """Told of each run that is over. `lost`: the task is no longer this daemon's."""

    def __call__(self, run: Run, *, lost: bool) -> None: ...


def _nobody(run: Run, *, lost: bool) -> None:
    del run, lost


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker coroutine needs; each task is worked by one of its own."""

    runs: RunStore
    make_loop: MakeLoop
    run_ended: RunEnded = _nobody

    async def work(self, assignment: Assignment) -> None:
        run = assignment.claim.run
        with bound_contextvars(task=run.task_id, session=run.session_id, run=run.id):
            _log.info("run started", attempt=run.attempt)
            try:
                await self._work(assignment)
            except RunLost:
                assignment.lost = True
                _log.warning("run lost: the task is no longer ours")
            finally:
                self.run_ended(run, lost=assignment.lost)

    async def _work(self, assignment: Assignment) -> None:
        ending: Ending | None = None
        interrupted = False
        with assignment.scope:
            try:
                ending = await make_and_work(self.make_loop, assignment)
            except Interrupted:
                interrupted = True
        if assignment.lost:
            _log.warning("run lost: its lease had run out")
        elif assignment.scope.cancelled_caught:
            await self._settle(assignment, CANCELLED if assignment.cancelled else None)
        elif interrupted or ending is not None:
            await self._settle(assignment, ending)
        else:
            _log.info("run ended by a terminal tool")

    async def _settle(self, assignment: Assignment, ending: Ending | None) -> None:
        """Write how the run ended; None puts the task back. Tried again while the disk refuses."""
        run = assignment.claim.run
        while True:
            try:
                if ending is None:
                    await self.runs.put_back(run)
                    _log.info("task put back")
                else:
                    await self.runs.end(run, ending)
                    _log.info("run ended", ending=ending.name, error=ending.error)
            except StoreError as error:
                _log.error("the end of the run could not be stored yet", error=error.message)
                if assignment.stopping.is_set():
                    return  # the next daemon finds the task still ours, and us gone
                await anyio.sleep(_SETTLE_AGAIN_S)
            else:
                return


async def make_and_work(make_loop: MakeLoop, assignment: Assignment) -> Ending | None:
    """Run the loop; an error that it did not expect becomes the ending of the task."""
    try:
        return await make_loop(assignment).work()
    except AgentdError as error:
        _log.error("run failed", error=error.message)
        return failed_by(error)
    except (Interrupted, RunLost):
        raise
    except Exception as error:  # noqa: BLE001 - whatever happens, the task ends up somewhere
        _log.exception("run failed unexpectedly")
        why = f"internal error: {error!r}"
        return Ending("failed", TaskState.FAILED, error=why, retryable=True, transient=True)
