"""The queue beside two others: huey on SQLite, procrastinate on PostgreSQL. No-op tasks.

Each has one worker process with ten workers and durable writes. procrastinate needs a server:
POSTGRES_DSN=postgresql://… names an empty database. What is absent is skipped with a message.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask, TaskState
from agentd.store.tasks import TaskStore
from scripts.benches.figures import Figure, percentile
from tests.processes import new_home

_TASKS, _PICKUPS, _WORKERS = 1000, 40, 10
_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_HUEY = """
import os, time
from huey import SqliteHuey
huey = SqliteHuey(filename=os.environ["RIVAL_FILE"], fsync=True)

@huey.task()
def noop():
    return time.monotonic()
"""
_PROCRASTINATE = """
import os, sys, time, anyio
from procrastinate import App, PsycopgConnector
app = App(connector=PsycopgConnector(conninfo=os.environ["POSTGRES_DSN"]))
began = open(os.environ["RIVAL_FILE"], "a", buffering=1)

@app.task(name="noop")
async def noop():
    began.write(f"{time.monotonic()}\\n")

async def work():
    async with app.open_async():
        await app.run_worker_async(concurrency=10, install_signal_handlers=False)

if __name__ == "__main__":
    anyio.run(work)
"""


@dataclass(frozen=True, slots=True)
class _Measured:
    enqueued_per_s: float
    done_per_s: float
    pickups_ms: list[float]

    def figures(self, name: str) -> list[Figure]:
        return [
            Figure(f"{name}: enqueued, one after another", self.enqueued_per_s, "/s"),
            Figure(f"{name}: no-op tasks, {_WORKERS} workers", self.done_per_s, "/s"),
            Figure(f"{name}: pickup, p50", percentile(self.pickups_ms, 50), "ms"),
            Figure(f"{name}: pickup, p99", percentile(self.pickups_ms, 99), "ms"),
        ]


def measure_rivals() -> list[Figure]:
    """Enqueue rate, no-op tasks per second, and from enqueueing to the start of the task."""
    figures = anyio.run(_agentd).figures("agentd")
    if importlib.util.find_spec("huey") is None:
        _skip("huey", "pip install huey")
    else:
        figures += _huey().figures("huey, SQLite")
    if importlib.util.find_spec("procrastinate") is None:
        _skip("procrastinate", "pip install procrastinate psycopg[binary]")
    elif "POSTGRES_DSN" not in os.environ:
        _skip("procrastinate", "set POSTGRES_DSN to an empty database")
    else:
        figures += anyio.run(_procrastinate).figures("procrastinate, PostgreSQL")
    return figures


def _skip(name: str, how: str) -> None:
    print(f"skipping {name}: {how}", file=sys.stderr)


async def _agentd() -> _Measured:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        script = Path(folder) / "script.toml"
        script.write_text(_DONE)
        model, workers = f"scripted:{script}", str(_WORKERS)
        home = new_home(Path(folder), AGENT__MODEL=model, DAEMON__CONCURRENCY=workers)
        async with open_store(load_config(home.path)) as store:
            tasks = TaskStore(store, SystemClock())
            start = time.monotonic()
            for _ in range(_TASKS):
                await tasks.enqueue(NewTask("No-op.", enqueued_by="bench"))
            enqueued_per_s = _TASKS / (time.monotonic() - start)
            begun = time.monotonic()
            with _running(home.command("run"), folder, home.environment):
                await _until_done(tasks)
                done_per_s = _TASKS / (time.monotonic() - begun)
                pickups = [await _agentd_pickup(tasks) for _ in range(_PICKUPS)]
        return _Measured(enqueued_per_s, done_per_s, pickups)


async def _until_done(tasks: TaskStore) -> None:
    while len(await tasks.list(state=TaskState.COMPLETED, limit=_TASKS)) < _TASKS:  # noqa: ASYNC110 - of another process
        await anyio.sleep(0.05)


async def _agentd_pickup(tasks: TaskStore) -> float:
    """From the call of enqueue to the claim, which is when the worker's coroutine starts."""
    await anyio.sleep(0.15)
    before = SystemClock().now()
    task = (await tasks.enqueue(NewTask("No-op.", enqueued_by="bench"))).task
    while task.started_at is None:
        await anyio.sleep(0.05)
        task = await tasks.get(task.id)
    return (task.started_at - before).total_seconds() * 1000


def _huey() -> _Measured:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        (Path(folder) / "rival_huey.py").write_text(_HUEY)
        os.environ["RIVAL_FILE"] = str(Path(folder) / "huey.db")
        noop: Callable[[], Any] = _module(folder, "rival_huey").noop
        start = time.monotonic()
        results = [noop() for _ in range(_TASKS)]
        enqueued_per_s = _TASKS / (time.monotonic() - start)
        consumer = [sys.executable, "-m", "huey.bin.huey_consumer", "rival_huey.huey", "-q"]
        begun = time.monotonic()
        with _running([*consumer, "-w", str(_WORKERS), "-k", "thread"], folder):
            for each in results:
                each.get(blocking=True, timeout=60)
            done_per_s = _TASKS / (time.monotonic() - begun)
            pickups = [_huey_pickup(noop) for _ in range(_PICKUPS)]
        return _Measured(enqueued_per_s, done_per_s, pickups)


def _huey_pickup(noop: Callable[[], Any]) -> float:
    time.sleep(0.15)
    before = time.monotonic()
    return (noop().get(blocking=True, timeout=60) - before) * 1000


async def _procrastinate() -> _Measured:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        program = Path(folder) / "rival_procrastinate.py"
        program.write_text(_PROCRASTINATE)
        lines = Path(folder) / "began"
        lines.touch()
        os.environ["RIVAL_FILE"] = str(lines)
        rival = _module(folder, "rival_procrastinate")
        async with rival.app.open_async():
            if not await rival.app.check_connection_async():
                await rival.app.schema_manager.apply_schema_async()
            start = time.monotonic()
            for _ in range(_TASKS):
                await rival.noop.defer_async()
            enqueued_per_s = _TASKS / (time.monotonic() - start)
            begun = time.monotonic()
            with _running([sys.executable, str(program)], folder):
                done = await _lines(lines, _TASKS)
                done_per_s = _TASKS / (done[-1] - begun)
                pickups: list[float] = []
                for number in range(_PICKUPS):
                    await anyio.sleep(0.15)
                    before = time.monotonic()
                    await rival.noop.defer_async()
                    began = await _lines(lines, _TASKS + number + 1)
                    pickups.append((began[-1] - before) * 1000)
        return _Measured(enqueued_per_s, done_per_s, pickups)


def _module(folder: str, name: str) -> Any:
    """A fresh one for each run: it reads its variables when it is imported."""
    sys.modules.pop(name, None)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


async def _lines(file: Path, count: int) -> list[float]:
    while True:
        found = [float(line) for line in file.read_text().split()]  # noqa: ASYNC240 - a few bytes
        if len(found) >= count:
            return sorted(found)
        await anyio.sleep(0.02)


@contextmanager
def _running(
    command: list[str], folder: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    variables = environment or {**os.environ, "PYTHONPATH": folder}
    # Nobody reads what it logs; a pipe that fills up would stop it.
    process = subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL)
    with process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
