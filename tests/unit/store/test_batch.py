"""Who fails and who stays when short transactions share one of DuckDB's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.domain.errors import StoreError, StoreFailed
from agentd.store.batch import Batch, Owner, Statement
from agentd.store.hub import Hub

INSERT = "INSERT INTO t (id) VALUES ($id)"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    opened = Hub(tmp_path / "t.duckdb", busy_s=1)
    opened.attach()
    opened.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    yield opened
    opened.close()


def insert(owner: Owner, row_id: int) -> Statement:
    return Statement(owner, INSERT, {"id": row_id}, wants_rows=False)


def stored(hub: Hub) -> list[int]:
    return [row["id"] for row in hub.run("SELECT id FROM t ORDER BY id")]


def test_inserts_that_were_merged_fail_one_by_one(hub: Hub) -> None:
    good, bad, late = Owner(), Owner(), Owner()
    statements = [insert(good, 1), insert(bad, 2), insert(bad, 1), insert(late, 3)]
    Batch().commit(hub, statements)
    assert (good.failure, late.failure) == (None, None)
    assert isinstance(bad.failure, StoreError)
    assert stored(hub) == [1, 3]


def test_an_insert_waits_until_its_table_is_read(hub: Hub) -> None:
    batch, owner = Batch(), Owner()
    batch.run(hub, [insert(owner, 1), Statement(owner, "SELECT 5 AS five", {})])
    assert (len(batch.held), len(batch.ran)) == (1, 1)
    count = Statement(owner, "SELECT count(*) AS rows FROM t", {})
    batch.run(hub, [insert(owner, 2), count])
    assert count.rows == [{"rows": 2}]
    assert batch.held == []


def test_forgetting_an_owner_undoes_it_alone(hub: Hub) -> None:
    batch, gone, stays = Batch(), Owner(), Owner()
    read = Statement(gone, "SELECT count(*) FROM t", {})
    batch.run(hub, [insert(stays, 1), insert(gone, 2), read])
    batch.forget(hub, gone)
    batch.commit(hub, [insert(stays, 3)])
    assert stored(hub) == [1, 3]


def test_when_the_same_statement_gives_other_rows_nobody_is_acknowledged(hub: Hub) -> None:
    batch, lucky, bad = Batch(), Owner(), Owner()
    batch.run(hub, [insert(lucky, 1), Statement(lucky, "SELECT random() AS r, * FROM t", {})])
    with pytest.raises(StoreFailed, match="could not be repeated"):
        batch.run(hub, [Statement(bad, "SELECT nonsense", {})])
    with pytest.raises(StoreFailed):
        batch.commit(hub, [insert(lucky, 2)])
    assert stored(hub) == []
