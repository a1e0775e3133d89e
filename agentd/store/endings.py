"""What the end of a task means for those that come after it."""

from collections.abc import Sequence
from datetime import datetime

from agentd.domain.ids import TaskId
from agentd.store.connection import Connection
from agentd.store.queries import load

_SQL = load("tasks")


async def fail_successors(
    conn: Connection, ended: Sequence[TaskId], how: str, now: datetime
) -> None:
    """Fail, along the whole chain, what could only run after `ended`. `how`: "failed: why"."""
    first = next(iter(ended), None)
    while ended:
        reason = f"predecessor {first} {how}"
        failed = await conn.fetch(_SQL["fail_successors"], ids=list(ended), error=reason, now=now)
        ended = [TaskId(row["id"]) for row in failed]
