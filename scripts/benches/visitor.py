"""A second process that wants the same file: `python -m scripts.benches.visitor KIND PATH`.

It writes a row every 50 ms until a line comes on its standard input, then prints how long each
write took, in milliseconds, from wanting to being on disk.
"""

import json
import select
import sqlite3
import sys
import time
from pathlib import Path

import anyio
import duckdb

from agentd.store.store import Store

TABLE = "CREATE TABLE IF NOT EXISTS bench (id TEXT PRIMARY KEY, body TEXT)"
INSERT = "INSERT INTO bench (id, body) VALUES ($id, $body)"
BODY = "x" * 300
_PAUSE_S = 0.05


def insert_opening_each_time(path: Path, row_id: str) -> None:
    """Open, write, close; tried again while another process has the file."""
    while True:
        try:
            with duckdb.connect(str(path)) as connection:
                connection.execute(INSERT, {"id": row_id, "body": BODY})
        except duckdb.IOException:
            time.sleep(0.001)
        else:
            return


def sqlite_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


async def _visit_lease(path: Path) -> list[float]:
    waits: list[float] = []
    async with Store(path, busy_s=30) as store:
        while not _told_to_stop(_PAUSE_S):
            start = time.monotonic()
            async with store.transaction() as conn:
                await conn.execute(INSERT, id=f"visitor-{len(waits)}", body=BODY)
            waits.append((time.monotonic() - start) * 1000)
    return waits


def _visit_each(path: Path) -> list[float]:
    waits: list[float] = []
    while not _told_to_stop(_PAUSE_S):
        start = time.monotonic()
        insert_opening_each_time(path, f"visitor-{len(waits)}")
        waits.append((time.monotonic() - start) * 1000)
    return waits


def _visit_sqlite(path: Path) -> list[float]:
    waits: list[float] = []
    connection = sqlite_connection(path)
    while not _told_to_stop(_PAUSE_S):
        start = time.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(INSERT, {"id": f"visitor-{len(waits)}", "body": BODY})
        connection.execute("COMMIT")
        waits.append((time.monotonic() - start) * 1000)
    return waits


def _told_to_stop(within_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], within_s)[0])


def main() -> None:
    kind, path = sys.argv[1], Path(sys.argv[2])
    print("begun", flush=True)
    if kind == "lease":
        waits = anyio.run(_visit_lease, path)
    else:
        waits = _visit_each(path) if kind == "each" else _visit_sqlite(path)
    print(json.dumps(waits))


if __name__ == "__main__":
    main()
