"""Two daemons and an enqueueing process on one file: every task ends exactly once."""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.tasks import TaskStore
from tests.processes import Home, new_home

_TASKS = 200
_SCRIPT = """
[[turn]]
[[turn.call]]
tool = "ls"
input = { path = "." }
[[turn]]
[[turn.call]]
tool = "complete_task"
input = { summary = "Done: ${prompt}" }
"""


@pytest.mark.timeout(90)
async def test_200_tasks_of_two_daemons_end_exactly_once_each(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(_SCRIPT)
    home = new_home(tmp_path, AGENT__MODEL=f"scripted:{script}", DAEMON__CONCURRENCY="8")
    async with home.daemon(), home.daemon():
        ids = await _enqueue(home)
        tasks = await _all_ended(home)
    assert len(set(ids)) == _TASKS
    assert {task["id"] for task in tasks} == set(ids)
    assert Counter(task["state"] for task in tasks) == {"completed": _TASKS}
    assert {task["attempt"] for task in tasks} == {1}
    assert all(task["output"] == f"Done: {task['prompt']}" for task in tasks)
    async with open_store(load_config(home.path)) as store, store.transaction() as conn:
        runs = await conn.fetch("SELECT task_id, daemon_id, ending FROM runs")
        calls = await conn.fetch("SELECT task_id, count(*) AS n FROM model_calls GROUP BY task_id")
    assert Counter(run["task_id"] for run in runs) == dict.fromkeys(ids, 1)
    assert {run["ending"] for run in runs} == {"completed"}
    assert len({run["daemon_id"] for run in runs}) == 2, "one daemon did all the work"
    assert {row["n"] for row in calls} == {2}


async def _enqueue(home: Home) -> list[str]:
    """As a third process would: it opens the same file for each of its short transactions."""
    ids: list[str] = []
    async with open_store(load_config(home.path)) as store:
        tasks = TaskStore(store, SystemClock())
        for number in range(_TASKS):
            new = NewTask(prompt=f"task {number}", enqueued_by="test")
            ids.append((await tasks.enqueue(new)).task.id)
    return ids


async def _all_ended(home: Home) -> list[dict[str, object]]:
    config = load_config(home.path)
    with anyio.fail_after(60):
        while True:
            async with open_store(config) as store, store.transaction() as conn:
                rows = await conn.fetch("SELECT * FROM tasks")
            if rows and all(row["state"] not in ("pending", "running") for row in rows):
                return list(rows)
            await anyio.sleep(0.2)
