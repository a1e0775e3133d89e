"""What can be read of a really damaged file is saved, the rest is counted (salvage.py)."""

import os
import random
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from agentd.domain.errors import StoreError, StoreUnusable
from agentd.store.checks import check
from agentd.store.salvage import Salvage, salvage
from agentd.store.snapshot import snapshot
from agentd.store.store import Store
from tests.store_filling import filled, flip, ids_in, killed_while_writing

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def repaired(path: Path) -> Salvage:
    done = salvage(path, busy_s=5, now=_NOW)
    with snapshot(path, path.parent / "run", 5, read_only=False) as instance:
        assert not [each for each in check(instance, alive=()) if each.check == "readable"]
    return done


async def test_a_whole_database_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    known = await filled(path)
    before = path.read_bytes()
    done = repaired(path)
    assert (done.lost, done.log_bytes_lost) == (0, 0)
    assert await ids_in(path) == known
    assert done.kept.read_bytes() == before


@pytest.mark.parametrize("seed", range(2))
async def test_flipped_bytes_cost_the_rows_of_their_blocks(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    known = await filled(path, 4, turns=3000)
    chance = random.Random(seed)
    hit = chance.sample(_blocks_of_events(path), 2)
    flip(path, *(block + chance.randrange(8, 16_000) for block in hit))
    damaged = path.read_bytes()
    done = repaired(path)
    tables = {each.table: each for each in done.tables}
    assert tables["events"].rows + tables["events"].lost == 48_000
    assert tables["events"].rows > 24_000
    assert await ids_in(path) <= known
    assert len(await ids_in(path)) == 4 - tables["tasks"].lost
    assert done.kept.read_bytes() == damaged


def _blocks_of_events(path: Path) -> list[int]:
    """Where the blocks with the bodies of events begin; others may hold the catalogue itself."""
    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info('events') "
            "WHERE column_name = 'body' AND block_id >= 0 ORDER BY block_id"
        ).fetchall()
    return [3 * 4096 + block * 16_384 for (block,) in rows]


@pytest.mark.parametrize("number", [18, 48])
async def test_a_damaged_log_is_kept_up_to_the_damage(number: int, tmp_path: Path) -> None:
    path, log = tmp_path / "a.duckdb", tmp_path / "a.duckdb.wal"
    known = await filled(path, 1)
    killed_while_writing(path, 60)
    whole = log.stat().st_size
    flip(log, log.read_bytes().index(b"task %d" % number))
    with pytest.raises(StoreError):
        await ids_in(path)
    done = repaired(path)
    found = await ids_in(path)
    assert known < found
    assert len(found) == 1 + number
    assert 0 < done.log_bytes_lost < whole
    assert (done.lost, done.kept.with_name(done.kept.name + ".wal").exists()) == (0, True)


async def test_a_file_without_its_end_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path, 3, turns=1000)
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable) as caught:
        salvage(path, busy_s=5, now=_NOW)
    assert "db restore" in (caught.value.hint or "")
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*before-repair*"))


async def test_tables_that_people_made_are_saved_too(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    async with Store(path) as store, store.transaction() as conn:
        await conn.execute('CREATE TABLE "my own" (n INTEGER)')
        await conn.execute('INSERT INTO "my own" VALUES (7)')
        await conn.execute('CREATE VIEW mine AS SELECT sum(n) AS n FROM "my own"')
    repaired(path)
    async with Store(path) as store, store.transaction() as conn:
        assert await conn.fetch_value("SELECT n FROM mine") == 7
