"""Short transactions, committed in groups."""

import asyncio
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import RunLost, StoreError
from agentd.domain.news import News
from agentd.domain.task import NewTask
from agentd.store.leases import LeaseStore
from agentd.store.runs import RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.conftest import DAEMON

INSERT = "INSERT INTO sessions (id, created_at) VALUES ($id, now())"


async def ids(store: Store) -> set[str]:
    async with store.transaction() as conn:
        return {row["id"] for row in await conn.fetch("SELECT id FROM sessions")}


async def test_a_block_that_is_left_is_on_disk(tmp_path: Path) -> None:
    async with Store(tmp_path / "a.duckdb") as store, store.transaction() as conn:
        await conn.execute(INSERT, id="one")
    async with Store(tmp_path / "a.duckdb") as again:
        assert await ids(again) == {"one"}


async def test_an_exception_rolls_back_its_own_block_and_no_other(store: Store) -> None:
    async def write(name: str, *, fail: bool) -> None:
        async with store.transaction() as conn:
            await conn.execute(INSERT, id=name)
            await conn.fetch("SELECT 1")
            if fail:
                raise ValueError(name)

    names = [f"s{number}" for number in range(40)]
    results = await asyncio.gather(
        *(write(name, fail=number % 3 == 0) for number, name in enumerate(names)),
        return_exceptions=True,
    )
    assert [isinstance(each, ValueError) for each in results] == [n % 3 == 0 for n in range(40)]
    assert await ids(store) == {name for number, name in enumerate(names) if number % 3}


async def test_a_refused_statement_fails_its_own_block_and_no_other(store: Store) -> None:
    async def write(name: str) -> None:
        async with store.transaction() as conn:
            await conn.execute(INSERT, id=name)

    results = await asyncio.gather(
        *(write(f"s{number % 10}") for number in range(20)), return_exceptions=True
    )
    assert [isinstance(each, StoreError) for each in results] == [False] * 10 + [True] * 10
    assert len(await ids(store)) == 10


async def test_a_swallowed_error_does_not_commit_the_rest(store: Store) -> None:
    with pytest.raises(StoreError):
        async with store.transaction() as conn:
            await conn.execute(INSERT, id="before")
            with pytest.raises(StoreError):
                await conn.fetch("SELECT nonsense FROM nowhere")
    assert await ids(store) == set()


async def test_a_read_sees_what_was_written_before_it_in_the_same_group(store: Store) -> None:
    seen: list[int] = []

    async def write(number: int) -> None:
        async with store.transaction() as conn:
            await conn.execute(INSERT, id=f"s{number}")
            seen.append(await conn.fetch_value("SELECT count(*) FROM sessions"))

    await asyncio.gather(*(write(number) for number in range(20)))
    assert seen == list(range(1, 21))


async def test_cancelling_a_block_rolls_it_back_and_leaves_the_store_usable(store: Store) -> None:
    async def hang() -> None:
        async with store.transaction() as conn:
            await conn.fetch("SELECT 1")
            await conn.execute(INSERT, id="never")
            await anyio.sleep_forever()

    with anyio.move_on_after(0.05):
        await hang()
    assert await ids(store) == set()


async def test_a_block_that_waits_for_the_world_is_ended(tmp_path: Path) -> None:
    async with Store(tmp_path / "a.duckdb") as store:
        await ids(store)  # which makes the tables
    async with Store(tmp_path / "a.duckdb", transaction_s=0.05, busy_s=0) as store:
        with pytest.raises(StoreError, match="open for too long"):
            async with store.transaction() as conn:
                await conn.execute(INSERT, id="never")
                await anyio.sleep_forever()
        assert await ids(store) == set()


async def test_a_second_transaction_in_the_same_call_is_refused(store: Store) -> None:
    async with store.transaction():
        with pytest.raises(StoreError, match="use its connection"):
            async with store.transaction():
                pass


async def test_a_closed_connection_says_so(store: Store) -> None:
    async with store.transaction() as conn:
        pass
    with pytest.raises(StoreError, match="closed"):
        await conn.fetch("SELECT 1")


async def test_what_a_lost_run_wrote_does_not_count(
    store: Store, tasks: TaskStore, runs: RunStore, leases: LeaseStore
) -> None:
    await tasks.enqueue(NewTask("work"))
    first = (await runs.glance(DAEMON, limit=1)).claims[0].run
    await leases.take_over([DAEMON])

    async def good() -> None:
        async with store.transaction() as conn:
            await conn.execute(INSERT, id="good")

    async def fenced() -> None:
        async with store.transaction() as conn:
            conn.fence(first)
            await conn.execute(INSERT, id="zombie")

    results = await asyncio.gather(good(), fenced(), good_too(store), return_exceptions=True)
    assert isinstance(results[1], RunLost)
    assert {"good", "good too"} <= await ids(store)
    assert "zombie" not in await ids(store)


async def good_too(store: Store) -> None:
    async with store.transaction() as conn:
        await conn.execute(INSERT, id="good too")


async def test_it_announces_after_the_commit_and_only_what_asked_for_it(tmp_path: Path) -> None:
    heard: list[News] = []
    async with Store(tmp_path / "a.duckdb", announce=heard.append) as store:
        async with store.transaction() as conn:
            await conn.execute(INSERT, id="quiet")
        assert heard == []
        async with store.transaction() as conn:
            await conn.execute(INSERT, id="loud")
            conn.announce()
            assert heard == []
        assert heard == [News.QUEUE]


async def test_a_follower_that_is_cancelled_does_not_take_the_commit_with_it(store: Store) -> None:
    started, go_on = anyio.Event(), anyio.Event()
    second_scope = anyio.CancelScope()

    async def first() -> None:
        async with store.transaction() as conn:
            await conn.fetch("SELECT 1")
            await conn.execute(INSERT, id="first")
            started.set()
            await go_on.wait()
            second_scope.cancel()  # it is counted on, and will not come

    async def second() -> None:
        with second_scope:
            async with store.transaction() as conn:
                await conn.fetch("SELECT 1")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await started.wait()
            group.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
    assert await ids(store) == {"first"}


async def test_cancelled_and_quick_transactions_never_wait_for_each_other(store: Store) -> None:
    kept: list[str] = []

    async def work(name: int) -> None:
        for number in range(30):
            with anyio.move_on_after((name * number) % 7 / 4000):
                async with store.transaction() as conn:
                    if number % 3:
                        await conn.fetch("SELECT 1")
                    await conn.execute(INSERT, id=f"{name}-{number}")
                kept.append(f"{name}-{number}")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in range(12):
                group.start_soon(work, name)
    assert set(kept) <= await ids(store)


async def test_nothing_of_a_failed_transaction_stays_whatever_its_order(store: Store) -> None:
    other = "INSERT INTO task_predecessors (task_id, after_id) VALUES ($task, $after)"
    async with store.transaction() as conn:
        await conn.execute(INSERT, id="taken")
    with pytest.raises(StoreError):
        async with store.transaction() as conn:
            await conn.execute(INSERT, id="taken")
            await conn.execute(other, task="t", after="a")
    async with store.transaction() as conn:
        assert await conn.fetch("SELECT * FROM task_predecessors") == []


async def test_a_tools_own_sql_sees_what_it_wrote(store: Store) -> None:
    async with store.transaction() as conn:
        await conn.execute("CREATE TABLE notes (n INTEGER)")
    async with store.transaction() as conn:
        await conn.execute("INSERT INTO notes (n) VALUES (1)")
        await conn.execute("INSERT INTO notes (n) VALUES (1)")
        await conn.execute("INSERT INTO notes (n) VALUES ($n)", n=2)
        assert await conn.fetch_value('SELECT count(*) FROM "NOTES"') == 3
