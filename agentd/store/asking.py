"""Answers the SQL of people. Reading works on a copy that no statement can leave or change.

Three locks, none of which trusts the text: DuckDB's parser must find nothing but SELECT in it; the
copy is attached read-only; and the instance may open no file but the archive's, nor be configured.
"""

import contextlib
import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import duckdb

from agentd.domain.errors import Refused
from agentd.domain.jsons import is_object
from agentd.store.archives import archived_batches, batches_in
from agentd.store.hub import Hub
from agentd.store.instance import Instance, quoted
from agentd.store.schema import admit
from agentd.store.snapshot import bring_up_to_date, snapshot
from agentd.store.views import view_statements

_READS = frozenset({"SELECT"})
_CHANGES = _READS | {"INSERT", "UPDATE", "DELETE", "MERGE_INTO"}
# Nodes of the parser's tree that read. Others stand in a WITH clause: a COPY there writes files.
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_FILE_OPERATORS = re.compile(r'"name": "[^"]*(COPY|READ_|GLOB|PARQUET)')
_FETCHED_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """`types`: DuckDB's names of them. `rows` are read while they are asked for."""

    names: list[str]
    types: list[str]
    rows: Iterator[tuple[Any, ...]]


def the_statement(sql: str, *, write: bool = False) -> str:
    """`sql`, if it is one statement that may run. Raises Refused."""
    try:
        found = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise Refused(f"this is not SQL: {error}") from error
    if len(found) != 1:
        raise Refused(f"these are {len(found)} statements", hint="Ask one thing at a time.")
    kind = found[0].type.name
    if kind in _READS or (write and kind in _CHANGES):
        return sql
    if kind in _CHANGES:
        raise Refused(f"{kind} changes the database", hint="If it shall: agentd sql --write.")
    raise Refused(
        f"{kind} is not for `agentd sql`",
        hint="It takes SELECT (also WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE); with --write also "
        "INSERT, UPDATE and DELETE.",
    )


@contextlib.contextmanager
def reading(path: Path, *, folder: Path, archive: Path, busy_s: float) -> Generator[Instance]:
    """The database as it is now, with its views, for `answer`.

    folder: where the copy lies meanwhile.
    """
    bring_up_to_date(path, busy_s)
    with snapshot(path, folder, busy_s, read_only=True) as instance:
        batches = batches_in(instance.run(archived_batches()))
        # The views are looked at when they are made: first the views, then the lock.
        for statement in view_statements(archive, batches):
            instance.run(statement)
        instance.run(f"SET allowed_directories = [{quoted(archive)}]")
        _lock(instance)
        yield instance


def _lock(instance: Instance | Hub) -> None:
    instance.run("SET enable_external_access = false")
    instance.run("SET lock_configuration = true")


def answer(instance: Instance, sql: str) -> Answer:
    """Run a reading statement. Raises Refused, StoreError, KeyboardInterrupt."""
    the_statement(sql)
    _refuse_effects(instance, sql)
    with instance.translating():
        cursor = instance.db.execute(sql)
    described = cursor.description or []
    return Answer(
        _unique([str(column[0]) for column in described]),
        [str(column[1]) for column in described],
        _rows(instance, cursor),
    )


def _refuse_effects(instance: Instance, sql: str) -> None:
    tree = json.loads(instance.value("SELECT json_serialize_sql($sql)", {"sql": sql}))
    if tree["error"]:
        raise Refused(f"this can not be read: {tree['error_message']}")
    for node in sorted(_nodes(tree) - _READING_NODES):
        what = node.removesuffix("_NODE").removesuffix("_QUERY")
        raise Refused(f"{what} does more than read", hint="Take it out of the WITH clause.")


def _nodes(tree: object) -> set[str]:
    """The kinds of all queries in the tree, however deep."""
    found: set[str] = set()
    open_ends: list[object] = [tree]
    while open_ends:
        here = open_ends.pop()
        if is_object(here):
            kind = here.get("type")
            if isinstance(kind, str) and kind.endswith("_NODE"):
                found.add(kind)
            open_ends.extend(here.values())
        elif isinstance(here, list):
            open_ends.extend(cast("list[object]", here))
    return found


def _rows(instance: Instance, cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while True:
        with instance.translating():
            rows = cursor.fetchmany(_FETCHED_ROWS)
        if not rows:
            return
        yield from rows


def _unique(names: list[str]) -> list[str]:
    """Two columns of one name would be one in JSON."""
    seen: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def change(path: Path, sql: str, *, busy_s: float) -> Answer:
    """Run a statement that may change rows, in one transaction on the database itself.

    On disk when this returns. Raises Refused, StoreError, KeyboardInterrupt.
    """
    the_statement(sql, write=True)
    hub = Hub(path, busy_s=busy_s, admit=admit)
    try:
        hub.attach()
        _lock(hub)
        hub.begin()
        # Other files are locked away, but the database itself is open to this instance.
        plan = hub.run(f"EXPLAIN (FORMAT json) {sql}")
        if _FILE_OPERATORS.search(str(plan[0]["explain_value"])):
            raise Refused("files are not for `agentd sql`")
        rows = hub.run(sql)
        hub.commit()
    except RuntimeError as error:
        if "interrupted" not in str(error):
            raise
        raise KeyboardInterrupt from error  # DuckDB has caught the signal; nothing was committed
    finally:
        hub.reset()  # a locked instance can not be detached; what it committed is in the log
        hub.lease.close()
    names = list(rows[0]) if rows else []
    return Answer(names, ["" for _ in names], iter([tuple(row.values()) for row in rows]))
