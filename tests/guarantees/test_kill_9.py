"""kill -9 of the daemon at random moments under load: nothing is lost and no task bricks."""

import random
import signal
from collections import Counter
from pathlib import Path

import anyio
import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.messages_api import MessagesApi
from tests.messages_turns import Call, Turn, call, script
from tests.processes import Home, new_home

_KILLS = 20
_TURNS = [
    Turn(
        thinking="Hm.",
        calls=(Call("ls", {"path": "."}), Call("ls", {"path": ".", "depth": 2})),
        delay_s=0.05,
    ),
    Turn(
        text="I write.",
        calls=(
            Call("write", {"path": "a/b.txt", "content": "x" * 1000}),
            Call("read", {"path": "a/b.txt"}),
            Call("list_tasks", {"limit": 3}),
        ),
    ),
    Turn(text="No call here.", delay_s=0.05),
    call("complete_task", summary="Done."),
]


@pytest.mark.timeout(150)
async def test_after_20_kills_at_random_moments_every_acknowledged_task_ends(
    tmp_path: Path,
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    async with MessagesApi(script(*_TURNS), keep_bodies=False) as api:
        home = new_home(
            tmp_path,
            AGENT__MODEL="anthropic:claude-haiku-4-5",
            MODELS__ANTHROPIC__API_KEY="key-1",
            MODELS__ANTHROPIC__BASE_URL=api.url,
            DAEMON__CONCURRENCY="6",
            AGENT__MAX_ATTEMPTS="1000",  # a kill is no fault of the tasks that run at that moment
            AGENT__ATTEMPT_BASE_SECONDS="0",
        )
        async with open_store(load_config(home.path)) as store:
            acknowledged = await _kill_under_load(home, store, dice)
        assert (await home.run("run", "--drain", timeout_s=60)).code == 0
        assert api.violations == [], f"seed {seed}"
    async with open_store(load_config(home.path)) as store, store.transaction() as conn:
        rows = await conn.fetch("SELECT id, state, output, error, attempt FROM tasks")
        lost = await conn.fetch("SELECT DISTINCT daemon_id FROM runs WHERE ending = 'lost'")
        ends = await conn.fetch("SELECT task_id FROM runs WHERE ending = 'completed'")
    assert {row["id"] for row in rows} == set(acknowledged), f"seed {seed}"
    assert {(row["state"], row["error"]) for row in rows} == {("completed", None)}, f"seed {seed}"
    assert Counter(row["task_id"] for row in ends) == dict.fromkeys(acknowledged, 1)
    assert len(lost) >= _KILLS / 4, f"seed {seed}: too few kills hit a run to show anything"


async def _kill_under_load(home: Home, store: Store, dice: random.Random) -> list[str]:
    """The ids of the tasks whose enqueueing was acknowledged."""
    acknowledged: list[str] = []
    tasks = TaskStore(store, SystemClock())
    for _ in range(_KILLS):
        for _ in range(8):
            new = NewTask(prompt=f"task {len(acknowledged)}", enqueued_by="test")
            acknowledged.append((await tasks.enqueue(new)).task.id)
        async with home.daemon() as daemon:
            await daemon.logged("run started")
            await anyio.sleep(dice.uniform(0, 0.25))  # the random moment
            daemon.signal(signal.SIGKILL)
            assert await daemon.ended() == -signal.SIGKILL
    return acknowledged
