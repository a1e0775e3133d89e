"""A real daemon process at work: how soon it picks a task up, and how many it gets done."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from scripts.benches.figures import Figure, percentile
from tests.messages_api import MessagesApi
from tests.messages_turns import DONE, Turn
from tests.processes import Home, new_home

_PICKUPS = 60
_ONE_TURN = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_SLOW_TASKS, _SLOW_TURNS, _SLOW_S, _SLOW_CONCURRENCY = 500, 4, 0.2, 50


def measure_pickup() -> list[Figure]:
    """From another process's enqueue to the first byte of the request at the model's server."""
    waits = anyio.run(_pickups)
    return [
        Figure("pickup on an idle daemon, p50", percentile(waits, 50), "ms", at_most=25),
        Figure("pickup on an idle daemon, p99", percentile(waits, 99), "ms"),
    ]


def measure_throughput() -> list[Figure]:
    """Tasks of one turn with the scripted model: claim, journal, terminal tool."""
    figures: list[Figure] = []
    for concurrency, count in ((1, 100), (10, 400), (50, 1000)):
        rate = anyio.run(_tasks_per_second, concurrency, count)
        least = 150 if concurrency == 50 else None
        name = f"tasks per second at concurrency {concurrency}"
        figures.append(Figure(name, rate, "/s", at_least=least))
    return figures


def measure_wall() -> list[Figure]:
    """500 tasks of 4 turns through the real SDK; the ideal is waiting for the server alone."""
    wall_s = anyio.run(_slow_server)
    ideal_s = _SLOW_TASKS * _SLOW_TURNS * _SLOW_S / _SLOW_CONCURRENCY
    return [
        Figure(f"{_SLOW_TASKS} tasks × {_SLOW_TURNS} turns of {_SLOW_S * 1000:g} ms", wall_s, "s"),
        Figure("… as a ratio to the ideal", wall_s / ideal_s, "×", at_most=1.5),
    ]


async def _pickups() -> list[float]:
    waits: list[float] = []
    asked = anyio.Event()

    def behave(_: Mapping[str, Any]) -> Turn:
        asked.set()
        return DONE

    async with MessagesApi(behave, keep_bodies=False) as api:
        with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
            home = _claude_home(Path(folder), api.url)
            async with _daemon(home), open_store(load_config(home.path)) as store:
                tasks = TaskStore(store, SystemClock())
                for number in range(_PICKUPS + 5):
                    asked = anyio.Event()
                    start = time.monotonic()
                    await tasks.enqueue(NewTask(prompt=f"{number}", enqueued_by="bench"))
                    await asked.wait()
                    waits.append((time.monotonic() - start) * 1000)
                    await anyio.sleep(0.15)  # it comes to rest, and lets go of the file
    return waits[5:]  # the first ones also load the SDK


async def _tasks_per_second(concurrency: int, count: int) -> float:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        script = Path(folder) / "script.toml"
        script.write_text(_ONE_TURN)
        home = new_home(
            Path(folder),
            AGENT__MODEL=f"scripted:{script}",
            DAEMON__CONCURRENCY=str(concurrency),
            LOG__LEVEL="warning",
        )
        await _enqueue(home, count)
        await _drain(home)
        return count / await _span_s(home)


async def _slow_server() -> float:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        turns = [{"calls": [{"tool": "ls", "input": {"path": "."}}], "delay_s": _SLOW_S}]
        turns *= _SLOW_TURNS - 1
        end = {"tool": "complete_task", "input": {"summary": "Done."}}
        turns.append({"calls": [end], "delay_s": _SLOW_S})
        script = Path(folder) / "turns.json"
        script.write_text(json.dumps(turns))
        command = [sys.executable, "-m", "tests.messages_api", "--port", "0", "--script", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            try:
                concurrency = str(_SLOW_CONCURRENCY)
                home = _claude_home(
                    Path(folder), url, DAEMON__CONCURRENCY=concurrency, LOG__LEVEL="warning"
                )
                await _enqueue(home, _SLOW_TASKS)
                await _drain(home)
                return await _span_s(home)
            finally:
                server.terminate()


def _claude_home(folder: Path, url: str, **variables: str) -> Home:
    return new_home(
        folder,
        AGENT__MODEL="anthropic:claude-haiku-4-5",
        MODELS__ANTHROPIC__API_KEY="key-1",
        MODELS__ANTHROPIC__BASE_URL=url,
        **variables,
    )


@asynccontextmanager
async def _daemon(home: Home) -> AsyncGenerator[None]:
    """Started from nothing, as its users start it: a fork of a warm one is slower for a while."""
    log = home.path / "bench.log"
    with log.open("wb") as said:
        process = await anyio.open_process(
            home.command("run"), env=home.environment, stdout=subprocess.DEVNULL, stderr=said
        )
    try:
        with anyio.fail_after(30):
            while b"daemon started" not in log.read_bytes():  # noqa: ASYNC110 - a file tells nobody
                await anyio.sleep(0.05)
        yield
    finally:
        process.terminate()
        with anyio.CancelScope(shield=True):
            await process.wait()


async def _enqueue(home: Home, count: int) -> None:
    async with open_store(load_config(home.path)) as store:
        tasks = TaskStore(store, SystemClock())
        async with anyio.create_task_group() as group:
            for number in range(count):
                group.start_soon(tasks.enqueue, NewTask(prompt=f"{number}", enqueued_by="bench"))


async def _drain(home: Home) -> None:
    with anyio.fail_after(120):
        done = await anyio.run_process(
            home.command("run", "--drain"), env=home.environment, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())


async def _span_s(home: Home) -> float:
    """Seconds from the first claim to the last ending; all tasks must be completed."""
    async with open_store(load_config(home.path)) as store:
        rows = await _rows(store)
    states = {row["state"] for row in rows}
    if states != {"completed"}:
        raise RuntimeError(f"tasks ended as {states}")
    first = min(row["started_at"] for row in rows)
    return float((max(row["finished_at"] for row in rows) - first).total_seconds())


async def _rows(store: Store) -> Sequence[dict[str, Any]]:
    async with store.transaction() as conn:
        return await conn.fetch("SELECT state, started_at, finished_at FROM tasks")
