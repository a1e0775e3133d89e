"""Whether a long history slows the queue down, and how long a long session takes to go on."""

import tempfile
import time
from pathlib import Path
from statistics import median

import anyio

from agentd.domain.clock import SystemClock
from agentd.domain.event import Event, EventKind
from agentd.domain.ids import DaemonId
from agentd.domain.task import NewTask, TaskState
from agentd.store.events import EventStore
from agentd.store.runs import Ending, RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from scripts.benches.figures import Figure

_SIZES = (0, 10_000, 100_000, 1_000_000)
_TASKS, _AT_A_TIME, _ROUNDS = 200, 4, 3
_EVENTS = 2000
_DAEMON = DaemonId("bench")
_DONE = Ending("completed", TaskState.COMPLETED, output="Done.")
_FINISHED = """
INSERT INTO tasks (
    id, session_id, prompt, priority, state, has_predecessors, after_any, attempt, token, output,
    retryable, enqueued_by, created_at, updated_at, started_at, finished_at
)
SELECT 'old-' || n, 'old-' || n, 'An old prompt, number ' || n, 'medium', 'completed', FALSE, FALSE,
    1, 1, 'Done, and this is what came out of it.', FALSE, 'cli', moment, moment, moment, moment
FROM (
    SELECT n, TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds(CAST(n AS BIGINT)) AS moment
    FROM range(CAST($count AS BIGINT)) AS numbers(n)
)
"""


def measure_history() -> list[Figure]:
    """Claim and completion of 200 tasks, four at a time, beside so many finished ones."""
    # In turns, so that a machine that becomes slower does so for all of them.
    rounds = [[anyio.run(_claims_per_second, size) for size in _SIZES] for _ in range(_ROUNDS)]
    rates = dict(zip(_SIZES, map(median, zip(*rounds, strict=True)), strict=True))
    figures = [
        Figure(f"claims and completions with {size:,} finished tasks", rate, "/s")
        for size, rate in rates.items()
    ]
    ratio = min(rates.values()) / max(rates.values())
    figures.append(Figure("… the slowest as a ratio to the fastest", ratio, "×", at_least=0.7))
    resumed_ms = anyio.run(_resume_ms)
    figures.append(Figure(f"resume of a session with {_EVENTS:,} events", resumed_ms, "ms"))
    return figures


async def _claims_per_second(finished: int) -> float:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        path = Path(folder) / "agentd.duckdb"
        async with Store(path, transaction_s=300) as store:
            async with store.transaction() as conn:
                await conn.execute(_FINISHED, count=finished)
            tasks, runs = TaskStore(store, SystemClock()), RunStore(store, SystemClock())
            async with anyio.create_task_group() as group:
                for _ in range(_TASKS):
                    group.start_soon(tasks.enqueue, NewTask("Work.", enqueued_by="bench"))
        async with Store(path) as store:
            runs, done, start = RunStore(store, SystemClock()), 0, time.monotonic()
            while claims := (await runs.glance(_DAEMON, limit=_AT_A_TIME)).claims:
                async with anyio.create_task_group() as group:
                    for claim in claims:
                        group.start_soon(runs.end, claim.run, _DONE)
                done += len(claims)
            assert done == _TASKS
            return done / (time.monotonic() - start)


async def _resume_ms() -> float:
    """Claim a task whose session has a long journal, and read that into messages."""
    from agentd.agent.transcript import messages  # noqa: PLC0415 - the other figures need none

    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        async with Store(Path(folder) / "agentd.duckdb", transaction_s=60) as store:
            clock = SystemClock()
            runs, events = RunStore(store, clock), EventStore(store, clock)
            task = (await TaskStore(store, clock).enqueue(NewTask("Work.", enqueued_by="b"))).task
            (claim,) = (await runs.glance(_DAEMON, limit=1)).claims
            now = clock.now()
            journal = [
                Event(
                    session_id=task.session_id,
                    seq=number,
                    kind=EventKind.USER,
                    body={"text": f"Number {number}. " + "x" * 400, "source": "message"},
                    task_id=task.id,
                    run_id=claim.run.id,
                    created_at=now,
                )
                for number in range(1, _EVENTS + 1)
            ]
            await events.append(claim.run, journal)
            await runs.put_back(claim.run)
            start = time.monotonic()
            (claim,) = (await runs.glance(_DAEMON, limit=1)).claims
            found = await events.of_session(claim.run.session_id)
            assert messages(found)
            assert len(found) == _EVENTS
            return (time.monotonic() - start) * 1000
