"""The views of sql/views.sql, over the tables and their archive together.

They are temporary, made by whoever asks: a view that is stored names its columns for ever and would
break with the next migration, and the archive's files are not the same tomorrow. DuckDB's own.
"""

from collections.abc import Sequence
from pathlib import Path

from agentd.store.archives import TABLES, Batch, archive_file, archived_batches, batches_in
from agentd.store.connection import Connection
from agentd.store.instance import quoted
from agentd.store.queries import load


def view_statements(archive: Path, batches: Sequence[Batch]) -> list[str]:
    """What makes the views in an instance that has the database in use. May be repeated.

    batches: what `archives` holds.
    """
    queries = {f"all_{table}": _with_archive(table, archive, batches) for table in TABLES}
    queries |= {name: query.sql for name, query in load("views").items()}
    return [f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}" for name, sql in queries.items()]


async def make_views(conn: Connection, archive: Path) -> None:
    """For what agentd itself asks: the views, in an open transaction of the store."""
    batches = batches_in(await conn.fetch(archived_batches()))
    for statement in view_statements(archive, batches):
        await conn.execute(statement)


def _with_archive(table: str, archive: Path, batches: Sequence[Batch]) -> str:
    live = f"SELECT * FROM {table}"  # noqa: S608 - one of ours
    paths = [archive_file(archive, table, each.id) for each in batches if table in each.tables]
    if not paths:
        return live
    files = ", ".join(quoted(path) for path in paths)
    old = f"SELECT * FROM read_parquet([{files}], union_by_name = true)"  # noqa: S608 - quoted
    return f"{live} UNION ALL BY NAME {old}"
