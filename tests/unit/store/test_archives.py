"""Old sessions leave the tables for Parquet and stay where people look for them (archives.py)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentd.domain.ids import SessionId, TaskId
from agentd.domain.task import NewTask
from agentd.store.archives import TABLES, ArchiveStore, Pruned
from agentd.store.asking import answer, reading
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from agentd.store.views import make_views
from tests.clock import HandClock
from tests.store_filling import worked

_OLD = datetime(2025, 1, 1, tzinfo=UTC)
_CUT = datetime(2025, 6, 1, tzinfo=UTC)
_NEW = datetime(2025, 9, 1, tzinfo=UTC)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(tmp_path / "a.duckdb", busy_s=5) as store:
        yield store


@pytest.fixture
def archives(opened: Store, tmp_path: Path) -> ArchiveStore:
    return ArchiveStore(opened, HandClock(), tmp_path / "archive", batch_sessions=2)


def asked(store: Store, sql: str) -> list[tuple[object, ...]]:
    """What people see."""
    home = store.path.parent
    with reading(store.path, folder=home / "run", archive=home / "archive", busy_s=5) as instance:
        return list(answer(instance, sql).rows)


def everything(store: Store) -> dict[str, object]:
    return {table: sorted(map(str, asked(store, f"SELECT * FROM all_{table}"))) for table in TABLES}


async def live(store: Store, table: str) -> int:
    async with store.transaction() as conn:
        return int(await conn.fetch_value(f"SELECT count(*) FROM {table}"))


async def test_what_moves_is_the_same_where_people_look(
    opened: Store, archives: ArchiveStore
) -> None:
    for _ in range(5):
        await worked(opened, _OLD)
    await worked(opened, _NEW)
    before = everything(opened)
    costs = asked(opened, "SELECT * FROM cost_by_day ORDER BY day")
    would = await archives.would_prune(_CUT)
    done = await archives.prune(_CUT)
    assert (done.sessions, done.tasks, done.events) == (5, 5, 60)
    assert would == Pruned(5, 5, 60)
    assert {await live(opened, table) for table in ("sessions", "tasks")} == {1}
    assert await live(opened, "events") == 12
    assert everything(opened) == before
    assert asked(opened, "SELECT * FROM cost_by_day ORDER BY day") == costs
    assert asked(opened, "SELECT sum(cost_usd) FROM task_costs") == [(6 * 4.5,)]
    assert await live(opened, "archives") == 3
    assert await archives.prune(_CUT) == Pruned()


async def test_agentd_itself_can_ask_the_same_views(
    opened: Store, archives: ArchiveStore, tmp_path: Path
) -> None:
    for when in (_OLD, _NEW):
        await worked(opened, when)
        for _ in range(2):  # the archive grows, and the file is let go of in between
            await archives.prune(_CUT)
            async with opened.transaction() as conn:
                await make_views(conn, tmp_path / "archive")
                dollars = await conn.fetch_value("SELECT sum(cost_usd) FROM cost_by_model")
                assert dollars == 4.5 * (1 if when == _OLD else 2)
            await opened._engine.call(lambda hub: hub.detach())


async def test_what_is_not_over_stays(opened: Store, archives: ArchiveStore) -> None:
    clock = HandClock()
    tasks, sessions = TaskStore(opened, clock), SessionStore(opened, clock)
    spoken_to = await worked(opened, _OLD)
    await sessions.send(SessionId(spoken_to), "Are you there?", "person")
    awaited = await worked(opened, _OLD)
    await tasks.enqueue(NewTask(prompt="later", after=(TaskId(awaited),)))
    goes_on = await worked(opened, _OLD)
    await tasks.enqueue(NewTask(prompt="more", session_id=SessionId(goes_on)))
    watched = await worked(opened, _OLD)
    waiter = await worked(opened, _NEW)
    async with opened.transaction() as conn:
        await conn.execute(
            "UPDATE tasks SET state = 'waiting', wake_on_task = $on, finished_at = NULL "
            "WHERE id = $id",
            on=watched,
            id=waiter,
        )
    over = await worked(opened, _OLD)
    assert (await archives.prune(_CUT)).sessions == 1
    found = asked(opened, "SELECT id FROM all_sessions EXCEPT SELECT id FROM sessions")
    assert found == [(over,)]


async def test_the_journal_of_a_deleted_task_moves_when_it_is_old(
    opened: Store, archives: ArchiveStore
) -> None:
    kept = await worked(opened, _OLD)
    await TaskStore(opened, HandClock()).delete(TaskId(kept))
    assert (await archives.prune(_CUT)).events == 12
    assert asked(opened, "SELECT count(*) FROM all_events") == [(12,)]


async def test_a_long_session_makes_a_batch_of_its_own(opened: Store, tmp_path: Path) -> None:
    for turns in (2, 30, 2):
        await worked(opened, _OLD, turns=turns)
    archives = ArchiveStore(opened, HandClock(), tmp_path / "archive", batch_events=20)
    await archives.prune(_CUT)
    async with opened.transaction() as conn:
        rows = await conn.fetch("SELECT events FROM archives ORDER BY id")
    assert [row["events"] for row in rows] == [8, 120, 8]


async def test_files_that_do_not_count_change_nothing(
    opened: Store, archives: ArchiveStore, tmp_path: Path
) -> None:
    """A crash after the files and before the commit leaves them."""
    await worked(opened, _OLD)
    await archives.prune(_CUT)
    before = everything(opened)
    folder = tmp_path / "archive" / "tasks"
    (known,) = folder.glob("*.parquet")
    (folder / "left.parquet").write_bytes(known.read_bytes())
    (folder / "left.part").write_bytes(b"half")
    assert everything(opened) == before
    await worked(opened, _OLD)
    await archives.prune(_CUT + timedelta(days=1))
    assert not (folder / "left.part").exists()


async def test_a_session_that_is_spoken_in_again_keeps_both_parts(
    opened: Store, archives: ArchiveStore
) -> None:
    old = await worked(opened, _OLD)
    await archives.prune(_CUT)
    tasks = TaskStore(opened, HandClock())
    new = (await tasks.enqueue(NewTask(prompt="again", session_id=SessionId(old)))).task
    found = asked(opened, f"SELECT id FROM all_tasks WHERE session_id = '{old}' ORDER BY id")
    assert found == sorted([(old,), (new.id,)])


async def test_large_results_go_along_and_older_batches_have_none(
    opened: Store, archives: ArchiveStore, tmp_path: Path
) -> None:
    session_id = await worked(opened, _OLD)
    older = await worked(opened, _OLD)
    large = "INSERT INTO large_results VALUES ('lr_1', $s, $s, 'c', 'x', false, 'text', 4, 8, $now)"
    async with opened.transaction() as conn:
        await conn.execute(large, s=session_id, now=_OLD)
    await archives.prune(_CUT)
    assert await live(opened, "large_results") == 0
    assert asked(opened, "SELECT id, content FROM all_large_results") == [("lr_1", "text")]
    assert asked(opened, "SELECT large_results FROM archives") == [(1,)]
    (file,) = (tmp_path / "archive/large_results").iterdir()
    file.unlink()
    async with opened.transaction() as conn:  # as the batches from before there were any
        await conn.execute("UPDATE archives SET large_results = NULL")
    assert asked(opened, "SELECT * FROM all_large_results") == []
    assert (older,) in asked(opened, "SELECT id FROM all_sessions")
