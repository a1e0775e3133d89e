"""What the end of a run leaves behind: its row, and what it means for those that come after."""

from collections.abc import Sequence
from datetime import datetime

from agentd.domain.ids import TaskId
from agentd.domain.run import Run
from agentd.store.connection import Connection
from agentd.store.queries import load

_TASKS = load("tasks")
_RUNS = load("runs")


async def record_run(
    conn: Connection, run: Run, ending: str, error: str | None, now: datetime
) -> None:
    """Write the row of a run that has ended."""
    await conn.execute(
        _RUNS["add"],
        id=run.id,
        task_id=run.task_id,
        session_id=run.session_id,
        daemon_id=run.daemon_id,
        attempt=run.attempt,
        token=run.token,
        started_at=run.started_at,
        ended_at=now,
        ending=ending,
        error=error,
    )


async def fail_successors(
    conn: Connection, ended: Sequence[TaskId], how: str, now: datetime
) -> None:
    """Fail, along the whole chain, what could only run after `ended`. `how`: "failed: why"."""
    first = next(iter(ended), None)
    while ended:
        reason = f"predecessor {first} {how}"
        failed = await conn.fetch(_TASKS["fail_successors"], ids=list(ended), error=reason, now=now)
        ended = [TaskId(row["id"]) for row in failed]
