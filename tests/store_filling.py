"""Databases with something in them, written the way agentd writes."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path

from agentd.domain.clock import SystemClock
from agentd.domain.ids import SessionId
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

# One reply, one call and its result in the journal of a session, as a run writes them.
_EVENTS = """
INSERT INTO events (session_id, seq, kind, task_id, body, created_at)
SELECT $session_id, 4 * n + place, kind, $session_id, replace(body, 'NAME', 'call' || n), $now
FROM range($turns) turn(n),
    (VALUES
        (1, 'user', '{"text": "Go.", "source": "task"}'),
        (2, 'assistant', '{"content": [{"type": "tool_use", "id": "NAME"}], "stop_reason": "x"}'),
        (3, 'tool_call', '{"call_id": "NAME", "tool": "read", "effect": "read"}'),
        (4, 'tool_result',
         '{"call_id": "NAME", "tool": "read", "content": "text", "is_error": false}')
    ) one(place, kind, body)
"""
_CALL = """
INSERT INTO model_calls SELECT $session_id || n, $session_id, $session_id, 'run', 'scripted:x', 1,
    $now, 250, 'ok', 'tool_use', NULL, 10, 5, 0, 0, 1500000, NULL
FROM range($turns) turn(n)
"""
_END = "UPDATE tasks SET state = 'completed', finished_at = $now, updated_at = $now WHERE id = $id"


async def worked(store: Store, now: datetime, *, turns: int = 3, prompt: str = "Do it.") -> str:
    """A task that is completed at `now`, with a journal and what it cost: 1.50 $ a turn."""
    clock = SystemClock()
    task = (await TaskStore(store, clock).enqueue(NewTask(prompt=prompt))).task
    async with store.transaction() as conn:
        about = {"session_id": task.session_id, "turns": turns, "now": now}
        await conn.execute(_EVENTS, **about)
        await conn.execute(_CALL, **about)
        await conn.execute(_END, id=task.id, now=now)
        await conn.execute(
            "UPDATE sessions SET created_at = $now WHERE id = $id", id=task.session_id, now=now
        )
    return str(SessionId(task.session_id))


async def filled(path: Path, count: int = 5, *, turns: int = 3) -> set[str]:
    """A database of `count` completed tasks; their ids."""
    async with Store(path, busy_s=5) as store:
        now = SystemClock().now()
        return {await worked(store, now, turns=turns) for _ in range(count)}


async def ids_in(path: Path) -> set[str]:
    async with Store(path, busy_s=5) as store, store.transaction() as conn:
        return {row["id"] for row in await conn.fetch("SELECT id FROM tasks")}


def flip(path: Path, *places: int) -> None:
    """Turn over all bits of some bytes of a file."""
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 0xFF
    path.write_bytes(data)


_WRITE_AND_DIE = """
import os, sys, anyio
from pathlib import Path
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

async def main():
    async with Store(Path(sys.argv[1])) as store:
        for number in range(int(sys.argv[2])):
            await TaskStore(store, SystemClock()).enqueue(NewTask(prompt=f"task {number}"))
        os._exit(9)

anyio.run(main)
"""


def killed_while_writing(path: Path, count: int) -> None:
    """Enqueue `count` tasks in a process that dies right after: they stand in the log."""
    command = [sys.executable, "-c", _WRITE_AND_DIE, str(path), str(count)]
    assert subprocess.run(command, check=False).returncode == 9
