"""Whether a database is whole: it can be read, its keys find every row, and its rows make sense.

Works on a copy (snapshot.py): nobody waits for it, and what it does to find out stays there.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentd.domain.errors import StoreError
from agentd.store.archives import TABLES, archive_file, archived_batches
from agentd.store.files import Progress, silent
from agentd.store.instance import Instance, named, tables
from agentd.store.queries import load

_MOST_IDS = 10
_TAKE_OVER = "Start a daemon (agentd run): it takes over what dead ones left behind."
_BY_HAND = "No command of agentd does this. Look at it: agentd session history ID; then restore a "
_MEND = _BY_HAND + "backup, or mend the row with agentd sql --write."
_SALVAGE = "Restore a backup (agentd db restore), or save what can be read: agentd db repair."

# query of sql/checks.sql → what it found, and what to do about it
MEANINGS = {
    "running_without_daemon": ("tasks run, and no living daemon runs them", _TAKE_OVER),
    "running_without_run": ("tasks run without a run of theirs", _MEND),
    "running_side_by_side": ("sessions in which several tasks run at once", _MEND),
    "waiting_for_nothing": (
        "tasks wait for nothing that could happen",
        "Wake them: agentd task resume ID",
    ),
    "pending_for_ever": (
        "tasks come after one that failed, was cancelled or is gone",
        "Cancel them (agentd task cancel ID), or retry the task that they come after.",
    ),
    "predecessors_not_noted": ("tasks do not know that they come after others", _MEND),
    "ended_without_time": ("tasks have ended and nobody knows when", _MEND),
    "unfinished_with_time": ("tasks go on although they have an end", _MEND),
    "same_key_twice": (
        "keys that several unfinished tasks have",
        "Cancel all but one: agentd sql \"SELECT id FROM tasks WHERE key = 'KEY'\"",
    ),
    "run_ahead_of_task": ("runs are newer than their task: an older state was written", _MEND),
    "gap_in_journal": ("sessions whose journal has holes", _MEND),
    "result_without_call": ("sessions with results of calls that nobody asked for", _MEND),
    "task_without_session": ("tasks without their session", _MEND),
    "events_without_session": ("journals without their session", _MEND),
    "message_without_session": ("messages without their session", _MEND),
    "run_without_session": ("runs without their session", _MEND),
    "model_call_without_session": ("model calls without their session", _MEND),
    "predecessor_without_task": ("entries of `after` without their task", _MEND),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`ids`: the first few of `count`."""

    check: str
    count: int
    text: str
    hint: str
    ids: tuple[str, ...] = ()


def check(
    instance: Instance,
    *,
    alive: Collection[str],
    archive: Path | None = None,
    progress: Progress = silent,
) -> list[Finding]:
    """Everything that is wrong with the database attached as `agentd`, in use.

    alive: ids of the daemons that live; what they run is in order. archive: its folder.
    """
    damages = list(integrity(instance, progress))
    if damages:
        return damages
    missing = missing_files(instance, archive) if archive else ()
    return [*invariants(instance, alive), *missing]


def integrity(instance: Instance, progress: Progress = silent) -> Iterator[Finding]:
    """Every table read whole, and every row looked up by its key."""
    try:
        names = tables(instance, "agentd")
    except StoreError as error:
        yield Finding("readable", 1, f"the list of tables: {error.message}", _SALVAGE)
        return
    for done, name in enumerate(names):
        progress(f"reading {name}", done, len(names))
        try:
            yield from _table(instance, name)
        except StoreError as error:
            yield Finding("readable", 1, f"table {name}: {error.message}", _SALVAGE, (name,))
    progress("reading", len(names), len(names))


def missing_files(instance: Instance, archive: Path) -> Iterator[Finding]:
    """Files of the archive that count and are not there."""
    for row in instance.run(archived_batches()):
        paths = (archive_file(archive, table, row["id"]) for table in TABLES)
        lost = tuple(str(path) for path in paths if not path.is_file())
        if lost:
            yield Finding(
                "archive",
                len(lost),
                f"files of the archive are missing: batch {row['id']}",
                "Put them back from a copy. Without them: delete that row of `archives` with "
                "agentd sql --write.",
                lost,
            )


def _table(instance: Instance, name: str) -> Iterator[Finding]:
    table = f"agentd.main.{named(name)}"
    # The hash makes DuckDB read every block, and compare its checksum.
    counted = instance.run(
        f"SELECT count(*) AS listed, count(hash(each)) AS read FROM {table} AS each"  # noqa: S608 - a name of the catalog, quoted
    )[0]
    missing = _not_found_by_key(instance, table) if _has_key(instance, name) else 0
    if counted["listed"] != counted["read"] or missing:
        yield Finding(
            "keys",
            abs(counted["listed"] - counted["read"]) + missing,
            f"table {name}: {counted['listed']} rows, {counted['read']} by scan, "
            f"{counted['listed'] - missing} by key",
            "The key is damaged, the rows are there. Build it anew: agentd db compact",
            (name,),
        )


def _not_found_by_key(instance: Instance, table: str) -> int:
    """Every row once more: the key refuses those that it knows, and the others show."""
    with instance.rolled_back():
        added = f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT DO NOTHING"  # noqa: S608 - same
        return int(instance.value(added))


def _has_key(instance: Instance, name: str) -> bool:
    known = (
        "SELECT count(*) FROM duckdb_constraints() WHERE database_name = 'agentd' "
        "AND table_name = $name AND constraint_type = 'PRIMARY KEY'"
    )
    return bool(instance.value(known, {"name": name}))


def invariants(instance: Instance, alive: Collection[str]) -> Iterator[Finding]:
    """What sql/checks.sql finds."""
    for name, query in load("checks").items():
        text, hint = MEANINGS[name]
        uses = {"alive": list(alive)} if "$alive" in query.sql else None
        ids = [str(row["id"]) for row in instance.run(query.sql, uses)]
        if ids:
            yield Finding(name, len(ids), text, hint, tuple(ids[:_MOST_IDS]))
