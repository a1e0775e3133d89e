"""Money is counted before it is spent: the provider never bills more than the cap.

Two daemons work the same queue and are killed in the middle of their calls. What the test server
has billed is the truth: every request that came in, whether or not its reply arrived.
"""

import random
import signal
from pathlib import Path

import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.messages_api import MessagesApi
from tests.messages_turns import Body, Call, Turn
from tests.processes import Home, new_home

_TASKS = 40
_TURNS = 5
_CAP_USD = 0.6
_MAX_TOKENS = 500


class Provider:
    """Bills a random part of what a request may cost at most: 1.25 and 5 dollars a million."""

    def __init__(self, dice: random.Random) -> None:
        self.billed_microusd = 0.0
        self._dice = dice

    def __call__(self, body: Body) -> Turn:
        written = self._dice.randint(1000, 2000)
        output = self._dice.randint(0, _MAX_TOKENS)
        self.billed_microusd += 1.25 * written + 5 * output
        usage = {"input_tokens": 0, "cache_creation_input_tokens": written, "output_tokens": output}
        number = sum(message["role"] == "assistant" for message in body["messages"])
        last = Call("complete_task", {"summary": "Done."})
        call = last if number == _TURNS - 1 else Call("ls", {"path": ".", "depth": number + 1})
        return Turn(calls=(call,), usage=usage, delay_s=self._dice.uniform(0, 0.03))


@pytest.mark.timeout(90)
async def test_two_daemons_that_are_killed_amid_their_calls_never_exceed_the_cap(
    tmp_path: Path,
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    provider = Provider(dice)
    async with MessagesApi(provider, keep_bodies=False) as api:
        home = new_home(
            tmp_path,
            AGENT__MODEL="anthropic:claude-haiku-4-5",
            AGENT__MAX_TOKENS=str(_MAX_TOKENS),
            BUDGET__TOTAL_USD=str(_CAP_USD),
            MODELS__ANTHROPIC__API_KEY="key-1",
            MODELS__ANTHROPIC__BASE_URL=api.url,
            DAEMON__CONCURRENCY="8",
        )
        async with open_store(load_config(home.path)) as store:
            await _kill_amid_calls(home, store, api, dice)
            await _enqueue(store)
        assert (await home.run("run", "--drain", timeout_s=60)).code == 0
    async with open_store(load_config(home.path)) as store, store.transaction() as conn:
        states = await conn.fetch("SELECT state, count(*) AS n FROM tasks GROUP BY state")
        spent = await conn.fetch_value("SELECT sum(cost_microusd) FROM model_calls")
        unknown = await conn.fetch_value(
            "SELECT count(*) FROM model_calls WHERE outcome = 'unknown'"
        )
        left = await conn.fetch_value("SELECT count(*) FROM reservations")
    counts = {row["state"]: row["n"] for row in states}
    cap = 1_000_000 * _CAP_USD
    assert provider.billed_microusd <= spent <= cap, f"seed {seed}"
    assert left == 0, f"seed {seed}: a reservation stayed"
    assert unknown > 0, f"seed {seed}: no kill hit a call"
    assert set(counts) == {"completed", "waiting"}, f"seed {seed}"
    # What is left would not do for one more call at its worst.
    assert cap - spent < 1.25 * 30_000 + 5 * _MAX_TOKENS, f"seed {seed}"


async def _enqueue(store: Store) -> None:
    async with store.transaction() as conn:
        for number in range(_TASKS):
            await TaskStore(conn, SystemClock()).enqueue(NewTask(prompt=f"Task {number}."))


async def _kill_amid_calls(home: Home, store: Store, api: MessagesApi, dice: random.Random) -> None:
    """Two daemons get work; when both are at it, one after the other is killed."""
    async with home.daemon() as first, home.daemon() as second:
        await _enqueue(store)
        for daemon in (first, second):
            await daemon.logged("run started")
        before = api.answered
        await api.until(lambda: api.answered > before)
        for daemon in dice.sample([first, second], 2):
            daemon.signal(signal.SIGKILL)
            await daemon.ended()
