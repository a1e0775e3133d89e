"""DuckDB's own: an instance apart from the hub, over files that no other process opens.

Copies of the database, backups, archives; the database itself only in `files.standing_still`.
"""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Self

import duckdb

from agentd.store.hub import BLOCK_SIZE, Row, translate


def quoted(text: str | Path) -> str:
    """As a string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def named(name: str) -> str:
    """As a name of SQL."""
    return '"' + name.replace('"', '""') + '"'


class Instance:
    """Files are attached under a name. Used by one thread. Raises StoreError."""

    def __init__(self, spill: Path | None = None) -> None:
        """spill: the folder for what does not fit into memory; nothing is spilled without it."""
        self._path = Path()
        self.db = duckdb.connect(":memory:")
        self.run("SET TimeZone = 'UTC'")
        self.run(f"SET temp_directory = {quoted(spill or '')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()

    def attach(
        self, path: Path, name: str, *, read_only: bool = False, shown: Path | None = None
    ) -> None:
        """shown: of what it is a copy, for messages."""
        self._path = shown or path
        options = "READ_ONLY" if read_only else f"BLOCK_SIZE {BLOCK_SIZE}"
        known = path.exists() and not read_only
        self.run(f"ATTACH {quoted(path)} AS {name}" + ("" if known else f" ({options})"))

    def detach(self, name: str) -> None:
        """Merges the log into the file."""
        self.run("USE memory")
        self.run(f"DETACH {name}")

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        with self.translating():
            cursor = self.db.execute(sql, parameters) if parameters else self.db.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def value(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row."""
        return next(iter(self.run(sql, parameters)[0].values()))

    @contextlib.contextmanager
    def rolled_back(self) -> Generator[None]:
        """Whatever the block changes is undone after it."""
        self.run("BEGIN TRANSACTION")
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # an error has undone it already
                self.run("ROLLBACK")

    @contextlib.contextmanager
    def translating(self) -> Generator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise translate(error, self._path) from error
        except RuntimeError as error:
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from error  # DuckDB has caught the signal


def tables(instance: Instance, name: str) -> list[str]:
    """The tables of an attached database, in the order of their names."""
    found = instance.run(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = $name ORDER BY table_name",
        {"name": name},
    )
    return [str(row["table_name"]) for row in found]
