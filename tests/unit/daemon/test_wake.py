"""Datagrams between processes: a poke wakes, costs nothing when nobody listens, and never fails."""

import stat
from pathlib import Path

import pytest

from agentd.daemon.wake import Wake, poke
from agentd.domain.news import News


async def test_a_poke_wakes_every_listener(tmp_path: Path) -> None:
    async with Wake(tmp_path, "a") as first, Wake(tmp_path, "b") as second:
        poke(tmp_path)
        assert await first.wait(5)
        assert await second.wait(5)


async def test_the_most_that_was_said_is_what_is_heard(tmp_path: Path) -> None:
    async with Wake(tmp_path, "a") as wake:
        for news in (News.QUEUE, News.SCHEDULES, News.QUEUE):
            poke(tmp_path, news)
        assert await wake.wait(5) is News.SCHEDULES
        poke(tmp_path)
        assert await wake.wait(5) is News.QUEUE
        assert await wake.wait(0) is News.NONE


async def test_pokes_before_the_wait_count_once(tmp_path: Path) -> None:
    async with Wake(tmp_path, "a") as wake:
        for _ in range(3):
            poke(tmp_path)
        assert await wake.wait(5)
        assert not await wake.wait(0)


async def test_more_pokes_than_a_socket_holds_neither_block_nor_fail(tmp_path: Path) -> None:
    async with Wake(tmp_path, "a") as wake:
        for _ in range(5000):
            poke(tmp_path)
        assert await wake.wait(5)


async def test_nobody_listens(tmp_path: Path) -> None:
    poke(tmp_path)
    poke(tmp_path / "not there")


async def test_the_socket_of_a_dead_process_is_cleared_away(tmp_path: Path) -> None:
    wake = Wake(tmp_path, "dead")
    await wake.__aenter__()
    assert wake._socket is not None
    wake._socket.close()
    poke(tmp_path)
    assert not list(tmp_path.iterdir())


async def test_only_the_owner_may_poke_and_nothing_is_left_behind(tmp_path: Path) -> None:
    async with Wake(tmp_path, "a"):
        (path,) = tmp_path.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("depth", [1, 5])
async def test_a_home_may_lie_deeper_than_a_socket_path_is_long(depth: int, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["x" * 60] * depth)
    deep.mkdir(parents=True)
    async with Wake(deep, "a") as wake:
        poke(deep)
        assert await wake.wait(5)
