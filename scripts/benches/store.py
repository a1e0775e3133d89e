"""Short transactions through the shared lease, and the ways one could have done it instead.

Every transaction inserts one row of about 300 bytes and is on disk when it counts. Where others can
get in, a second process wants the file all the time (visitor.py).
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import duckdb

from agentd.store.store import Store
from scripts.benches.figures import Figure, percentile
from scripts.benches.visitor import (
    BODY,
    INSERT,
    TABLE,
    insert_opening_each_time,
    sqlite_connection,
)

_SECONDS = 3.0
_WRITERS = 20


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        path = Path(folder)
        always = _always_open(path / "always.duckdb")
        alone, _ = _through_lease(path / "alone.duckdb", writers=1, visited=False)
        lease, waits = _through_lease(path / "lease.duckdb", writers=1, visited=True)
        many, _ = _through_lease(path / "many.duckdb", writers=_WRITERS, visited=False)
        each, each_waits = _open_per_call(path / "each.duckdb")
        lite, lite_waits = _sqlite(path / "lite.sqlite")
    return [
        Figure("always-open DuckDB, nobody else gets in", always, "tx/s"),
        Figure("shared lease, alone", alone, "tx/s"),
        Figure("shared lease, second process at work", lease, "tx/s"),
        Figure("… as a ratio to always-open", lease / always, "×", at_least=0.6),
        Figure("… second process waits, p50", percentile(waits, 50), "ms"),
        Figure("… second process waits, p99", percentile(waits, 99), "ms", at_most=50),
        Figure("open-per-call DuckDB, second process at work", each, "tx/s"),
        Figure("… second process waits, p99", percentile(each_waits, 99), "ms"),
        Figure("shared lease as a ratio to open-per-call", lease / each, "×", at_least=10),
        Figure(f"shared lease, {_WRITERS} concurrent writers", many, "tx/s"),
        Figure("… as a ratio to always-open", many / always, "×", at_least=3),
        Figure("SQLite WAL, synchronous FULL, second process at work", lite, "tx/s"),
        Figure("… second process waits, p99", percentile(lite_waits, 99), "ms"),
    ]


def _rate(write: Callable[[int], None]) -> float:
    """Calls per second."""
    count, start = 0, time.monotonic()
    while time.monotonic() < start + _SECONDS:
        write(count)
        count += 1
    return count / (time.monotonic() - start)


def _always_open(path: Path) -> float:
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)

        def write(number: int) -> None:
            connection.execute("BEGIN")
            connection.execute(INSERT, {"id": f"main-{number}", "body": BODY})
            connection.execute("COMMIT")

        return _rate(write)


def _through_lease(path: Path, *, writers: int, visited: bool) -> tuple[float, list[float]]:
    waits: list[float] = []

    async def main() -> float:
        async with Store(path, busy_s=30) as store:
            async with store.transaction() as conn:
                await conn.execute(TABLE)
            if not visited:
                return await _write_through(store, writers)
            with visitor("lease", path) as collected:
                rate = await _write_through(store, writers)
                waits.extend(await anyio.to_thread.run_sync(collected))
                return rate

    return anyio.run(main), waits


async def _write_through(store: Store, writers: int) -> float:
    count, start = 0, time.monotonic()

    async def write(name: int) -> None:
        nonlocal count
        while time.monotonic() < start + _SECONDS:
            count += 1
            async with store.transaction() as conn:
                await conn.execute(INSERT, id=f"main-{name}-{count}", body=BODY)

    async with anyio.create_task_group() as group:
        for name in range(writers):
            group.start_soon(write, name)
    return count / (time.monotonic() - start)


def _open_per_call(path: Path) -> tuple[float, list[float]]:
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
    with visitor("each", path) as collected:
        rate = _rate(lambda number: insert_opening_each_time(path, f"main-{number}"))
        return rate, collected()


def _sqlite(path: Path) -> tuple[float, list[float]]:
    connection = sqlite_connection(path)
    connection.execute(TABLE)
    with visitor("sqlite", path) as collected:
        rate = _rate(partial(_insert_sqlite, connection))
        return rate, collected()


def _insert_sqlite(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT, {"id": f"main-{number}", "body": BODY})
    connection.execute("COMMIT")


@contextmanager
def visitor(kind: str, path: Path) -> Iterator[Callable[[], list[float]]]:
    """A second process at work on `path`; the function ends it and returns its waits in ms."""
    command = [sys.executable, "-m", "scripts.benches.visitor", kind, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has begun

        def collected() -> list[float]:
            out, _ = process.communicate("stop\n", timeout=30)
            waits: list[float] = json.loads(out)
            return waits

        yield collected
