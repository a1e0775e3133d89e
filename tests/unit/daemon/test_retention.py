"""The daemon moves old sessions by itself (retention.py)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from agentd.daemon.retention import Retention
from agentd.domain.clock import SystemClock
from agentd.store.archives import ArchiveStore
from agentd.store.store import Store
from tests.desk import desk
from tests.store_filling import worked


async def archived(store: Store) -> int:
    async with store.transaction() as conn:
        return int(await conn.fetch_value("SELECT count(*) FROM archives"))


async def until_archived(store: Store) -> None:
    with anyio.fail_after(10):
        while True:
            if await archived(store):
                return
            await anyio.sleep(0.01)


async def test_a_running_daemon_moves_what_is_old(tmp_path: Path) -> None:
    async with desk(tmp_path, retention__days=30, retention__every_hours=0.0001) as at:
        await worked(at.store, datetime(2025, 1, 1, tzinfo=UTC))
        new = await worked(at.store, datetime.now(UTC))
        async with at.daemon():
            await until_archived(at.store)
        assert [row["id"] for row in await at.rows("SELECT id FROM tasks")] == [new]


async def test_a_daemon_that_keeps_everything_moves_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, retention__days=0, retention__every_hours=0.00001) as at:
        await worked(at.store, datetime(2025, 1, 1, tzinfo=UTC))
        await at.drain()
        assert await archived(at.store) == 0


async def test_a_round_that_fails_is_followed_by_another(tmp_path: Path) -> None:
    blocked = tmp_path / "archive"
    blocked.write_text("a file where the folder should be")
    async with Store(tmp_path / "a.duckdb") as store:
        await worked(store, datetime(2025, 1, 1, tzinfo=UTC))
        archives = ArchiveStore(store, SystemClock(), blocked)
        retention = Retention(archives, SystemClock(), keep=timedelta(days=1), every_s=0.01)
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(retention.run, stopping)
            await anyio.wait_all_tasks_blocked()
            blocked.unlink()
            await until_archived(store)
            stopping.set()
