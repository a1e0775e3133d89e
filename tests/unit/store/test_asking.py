"""SQL of people: it answers what can be asked, and can do nothing else (asking.py)."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import AgentdError, Refused, StoreError
from agentd.store.asking import answer, change, reading, the_statement
from agentd.store.instance import Instance
from tests.store_filling import filled, ids_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    anyio.run(lambda: filled(tmp_path / "a.duckdb", 3))
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "x.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return tmp_path / "a.duckdb"


@pytest.fixture
def instance(path: Path) -> Iterator[Instance]:
    home = path.parent
    with reading(path, folder=home / "run", archive=home / "archive", busy_s=5) as opened:
        yield opened


def rows(instance: Instance, sql: str) -> list[tuple[object, ...]]:
    return list(answer(instance, sql).rows)


def contents(folder: Path) -> dict[str, bytes]:
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each): each.read_bytes() for each in files if not each.name.endswith(".lease")}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM tasks",
        "WITH t AS (SELECT * FROM tasks) SELECT count(*) FROM t -- a comment",
        "FROM tasks SELECT count(*);",
        "SELECT count(*) FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)",
        "WITH RECURSIVE r AS (SELECT 3 AS n UNION SELECT n FROM r) SELECT n FROM r",
        "VALUES (3)",
    ],
)
def test_what_reads_is_answered(sql: str, instance: Instance) -> None:
    assert rows(instance, sql) == [(3,)]


@pytest.mark.parametrize("sql", ["SHOW TABLES", "DESCRIBE tasks", "SUMMARIZE tasks"])
def test_people_can_look_around(sql: str, instance: Instance) -> None:
    assert len(rows(instance, sql)) > 5


_EFFECTS = [
    "DELETE FROM tasks",
    "UPDATE tasks SET title = 'x'",
    "INSERT INTO sessions VALUES ('x', 'x', now())",
    "WITH gone AS (DELETE FROM tasks RETURNING *) SELECT * FROM gone",
    "WITH made AS (INSERT INTO sessions VALUES ('x', 'x', now()) RETURNING *) SELECT * FROM made",
    "CREATE TABLE mine (n INTEGER)",
    "CREATE TEMP TABLE mine (n INTEGER)",
    "DROP TABLE tasks",
    "COPY tasks TO '{home}/out.csv'",
    "COPY (SELECT 1) TO '{home}/archive/out.csv'",
    "WITH c AS (COPY (SELECT 1) TO '{home}/archive/out.csv') SELECT 1",
    "WITH c AS (COPY (SELECT 1) TO '{home}/archive/x.csv') SELECT 1",
    "SELECT (WITH c AS (COPY (SELECT 1) TO '{home}/archive/x.csv') SELECT 1)",
    "SELECT * FROM query('COPY tasks TO ''{home}/archive/out.csv''')",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{home}/archive/out.csv'",
    "EXPORT DATABASE '{home}/archive/all'",
    "SELECT * FROM read_csv('{home}/secret.csv')",
    "SELECT * FROM '{home}/secret.csv'",
    "SELECT * FROM read_text('{home}/archive/../secret.csv')",
    "SELECT * FROM read_blob('{home}/a.duckdb')",
    "SELECT * FROM glob('{home}/*')",
    "ATTACH '{home}/other.duckdb'",
    "DETACH agentd",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "RESET threads",
    "PRAGMA threads = 1",
    "SET enable_external_access = true",
    "CALL pragma_version()",
    "BEGIN",
    "VACUUM",
    "CHECKPOINT",
    "PREPARE p AS SELECT 1",
    "USE memory",
    "SELECT 1; DELETE FROM tasks",
    "/* SELECT */ DELETE FROM tasks",
    "",
    "SELEC 1",
    "SELECT * FROM nowhere",
]


@pytest.mark.parametrize("sql", _EFFECTS)
def test_what_does_more_than_read_is_refused(sql: str, path: Path, instance: Instance) -> None:
    before = contents(path.parent)
    with pytest.raises((Refused, StoreError)):
        rows(instance, sql.format(home=path.parent))
    assert contents(path.parent) == before
    assert rows(instance, "SELECT count(*) FROM tasks") == [(3,)]


def test_the_copy_itself_takes_no_change(instance: Instance) -> None:
    """What the parser might miss, the engine refuses."""
    with pytest.raises(StoreError, match="read-only"):
        instance.run("DELETE FROM tasks")


def test_a_variable_of_ours_is_no_table(instance: Instance) -> None:
    secret = instance.db.execute("SELECT 42 AS n")
    with pytest.raises(StoreError, match="does not exist"):
        rows(instance, "SELECT * FROM secret")
    assert secret is not None


def test_two_columns_of_one_name_stay_two(instance: Instance) -> None:
    assert answer(instance, "SELECT 1 AS n, 2 AS n").names == ["n", "n_2"]


def test_who_asks_holds_nobody_up(path: Path, instance: Instance) -> None:
    """The copy is what it was, the database goes on."""
    more = anyio.run(lambda: filled(path, 1))
    assert rows(instance, "SELECT count(*) FROM tasks") == [(3,)]
    assert more < anyio.run(lambda: ids_in(path))
    assert not [each for each in (path.parent / "run").rglob("*") if each.is_file()]


def test_a_change_is_on_disk_when_it_returns(path: Path) -> None:
    done = change(path, "UPDATE tasks SET title = 'new' RETURNING title", busy_s=5)
    assert list(done.rows) == [("new",)] * 3
    home = path.parent
    with reading(path, folder=home / "run", archive=home / "archive", busy_s=5) as instance:
        assert rows(instance, "SELECT DISTINCT title FROM tasks") == [("new",)]
    assert list(change(path, "DELETE FROM tasks", busy_s=5).rows) == [(3,)]
    assert anyio.run(lambda: ids_in(path)) == set()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE tasks",
        "ALTER TABLE tasks ADD COLUMN n INTEGER",
        "CREATE TABLE mine (n INTEGER)",
        "COPY tasks TO '{home}/out.csv'",
        "ATTACH '{home}/other.duckdb'",
        "SET threads = 1",
        "INSERT INTO sessions SELECT content, '', now() FROM read_text('{home}/secret.csv')",
        "INSERT INTO sessions SELECT filename, '', now() FROM read_blob('{home}/a.duckdb')",
        "WITH c AS (COPY (SELECT 1) TO '{home}/a.duckdb') DELETE FROM tasks",
        "INSERT INTO tasks SELECT * FROM tasks",
    ],
)
def test_a_change_of_anything_but_rows_is_refused(sql: str, path: Path) -> None:
    before = anyio.run(lambda: ids_in(path))
    with pytest.raises(AgentdError):
        change(path, sql.format(home=path.parent), busy_s=5)
    assert anyio.run(lambda: ids_in(path)) == before
    assert not (path.parent / "out.csv").exists()


def test_what_is_refused_says_what_would_do() -> None:
    with pytest.raises(Refused) as caught:
        the_statement("DELETE FROM tasks")
    assert "--write" in (caught.value.hint or "")
    assert the_statement("DELETE FROM tasks", write=True)
