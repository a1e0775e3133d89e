"""kill -9 of daemons at random moments under load: nothing is lost and no task bricks."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from tests.messages_api import MessagesApi
from tests.messages_turns import Call, Turn, call, script
from tests.processes import Home, new_home

_KILLS = int(os.environ.get("KILLS", "20"))
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


_ENQUEUE = """
import sys, time, anyio
from pathlib import Path
from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.tasks import TaskStore

async def main():
    async with open_store(load_config(Path(sys.argv[1]))) as store:
        tasks = TaskStore(store, SystemClock())
        while True:
            enqueued = await tasks.enqueue(NewTask("Work.", enqueued_by="test"))
            print(enqueued.task.id, flush=True)
            await anyio.sleep(0.1)

anyio.run(main)
"""


@pytest.mark.timeout(150 + 5 * _KILLS)
async def test_after_kills_at_random_moments_every_acknowledged_task_ends_once(
    tmp_path: Path,
) -> None:
    """Two daemons that are killed, and a process that enqueues; `KILLS=300` makes it 300 kills."""
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    async with MessagesApi(script(*_TURNS), keep_bodies=False) as api:
        home = new_home(
            tmp_path,
            AGENT__MODEL="anthropic:claude-haiku-4-5",
            MODELS__ANTHROPIC__API_KEY="key-1",
            MODELS__ANTHROPIC__BASE_URL=api.url,
            DAEMON__CONCURRENCY="4",
            AGENT__MAX_ATTEMPTS="1000",  # a kill is no fault of the tasks that run at that moment
            AGENT__ATTEMPT_BASE_SECONDS="0",
        )
        acknowledged = await _kill_under_load(home, dice)
        assert (await home.run("run", "--drain", timeout_s=100 + _KILLS)).code == 0
        assert api.violations == [], f"seed {seed}"
    async with open_store(load_config(home.path)) as store, store.transaction() as conn:
        rows = await conn.fetch("SELECT id, state, output, error, attempt FROM tasks")
        lost = await conn.fetch("SELECT id FROM runs WHERE ending = 'lost'")
        ends = await conn.fetch("SELECT task_id FROM runs WHERE ending = 'completed'")
    assert {row["id"] for row in rows} >= set(acknowledged), f"seed {seed}"
    assert {row["state"] for row in rows} == {"completed"}, f"seed {seed}"
    assert Counter(row["task_id"] for row in ends) == {row["id"]: 1 for row in rows}
    assert len(lost) >= _KILLS / 4, f"seed {seed}: too few kills hit a run to show anything"
    assert len(acknowledged) >= _KILLS


async def _kill_under_load(home: Home, dice: random.Random) -> list[str]:
    """The ids of the tasks whose enqueueing was acknowledged."""
    command = [sys.executable, "-c", _ENQUEUE, str(home.path)]
    async with await anyio.open_process(command, stdout=subprocess.PIPE) as enqueuing:
        assert enqueuing.stdout is not None
        said: list[bytes] = []

        async def listen() -> None:
            assert enqueuing.stdout is not None
            said.extend([piece async for piece in enqueuing.stdout])

        async with anyio.create_task_group() as listening:
            listening.start_soon(listen)
            async with anyio.create_task_group() as killing:
                for _ in range(2):
                    killing.start_soon(_kill_again_and_again, home, dice)
            enqueuing.kill()
    return b"".join(said).decode().split()


async def _kill_again_and_again(home: Home, dice: random.Random) -> None:
    for _ in range(_KILLS // 2):
        async with home.daemon() as daemon:
            await daemon.logged("run started")
            await anyio.sleep(dice.uniform(0, 0.25))  # the random moment
            daemon.signal(signal.SIGKILL)
            assert await daemon.ended() == -signal.SIGKILL
