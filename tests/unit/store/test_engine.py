"""The thread that touches DuckDB: order, errors, and letting go."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep

import anyio
import pytest

from agentd.store.engine import Engine
from agentd.store.file_lease import FileLease
from agentd.store.hub import Hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path / "t.duckdb", busy_s=1)


@pytest.fixture
def engine(hub: Hub) -> Iterator[Engine]:
    started = Engine(hub)
    yield started
    started.close()


async def test_jobs_run_in_the_order_in_which_they_came(engine: Engine) -> None:
    done: list[int] = []
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(engine.call, lambda _, number=number: done.append(number))
    assert done == list(range(50))


async def test_an_error_of_a_job_reaches_its_caller_and_nobody_else(engine: Engine) -> None:
    def fail(_: Hub) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine.call(fail)
    assert await engine.call(lambda _: 5) == 5


async def test_a_caller_that_was_cancelled_leaves_and_its_job_ends(engine: Engine) -> None:
    begun, go_on = Event(), Event()
    ended: list[bool] = []

    def work(_: Hub) -> None:
        begun.set()
        ended.append(go_on.wait(10))

    async with anyio.create_task_group() as group:
        group.start_soon(engine.call, work)
        await anyio.to_thread.run_sync(begun.wait)
        group.cancel_scope.cancel()
    assert ended == []
    go_on.set()
    assert await engine.call(lambda _: list(ended)) == [True]


async def test_it_lets_go_of_the_file_when_there_is_nothing_to_do(engine: Engine, hub: Hub) -> None:
    await engine.call(Hub.attach)
    assert hub.attached
    with anyio.fail_after(10):
        while hub.attached:  # noqa: ASYNC110 - nothing tells; that is the point
            await anyio.sleep(0.01)


async def test_it_keeps_the_file_while_a_transaction_is_open(engine: Engine, hub: Hub) -> None:
    await engine.call(Hub.begin)
    await anyio.sleep(0.2)  # twice as long as an idle file is kept
    assert hub.attached
    await engine.call(Hub.rollback)


def write(hub: Hub, rows: int) -> None:
    """One transaction; each row has at least 16 KB."""
    hub.begin()
    hub.do("CREATE TABLE IF NOT EXISTS t (n BIGINT, text TEXT)")
    for number in range(rows):
        hub.do("INSERT INTO t VALUES ($n, $text)", {"n": number, "text": f"{number}" * 16_000})
    hub.commit()


def test_a_short_log_is_left_to_whoever_waits_and_merged_when_nobody_does(hub: Hub) -> None:
    log = hub.path.with_name(hub.path.name + ".wal")
    next_one = Hub(hub.path, busy_s=5)
    write(hub, 0)
    with ThreadPoolExecutor(1) as other:
        attached = other.submit(next_one.attach)
        while not hub.lease.wanted():
            sleep(0.001)
        hub.detach()
        attached.result(timeout=5)
    assert log.stat().st_size > 0
    assert next_one.run("SELECT count(*) AS n FROM t") == [{"n": 0}]
    next_one.detach()
    assert not log.exists()
    next_one.close()


def test_a_long_log_is_merged_even_if_somebody_waits(hub: Hub) -> None:
    write(hub, 2)
    waiting = FileLease(hub.path)
    with ThreadPoolExecutor(1) as other:
        acquired = other.submit(waiting.acquire, 5)
        while not hub.lease.wanted():
            sleep(0.001)
        hub.detach()
        acquired.result(timeout=5)
    assert not hub.path.with_name(hub.path.name + ".wal").exists()
    waiting.close()
