"""Whether a database is whole: it can be read, its keys find every row, and its rows make sense.

Works on a copy (snapshot.py): nobody waits for it, and what it does to find out stays there.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentd.domain.errors import StoreError
from agentd.store.archives import archive_file, archived_batches, batches_in
from agentd.store.files import Progress, silent
from agentd.store.instance import Instance, named, quoted, tables
from agentd.store.queries import load

_MOST_IDS = 10
_LOOKED_UP = 1000  # keys in one statement; DuckDB uses the index for up to 2048
_BUILD_ANEW = "A key is damaged, the rows are there. Build it anew: agentd db compact"
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
    "large_result_without_event": ("stored results that no event names", _MEND),
    "large_result_missing": ("stored results that events name and nobody has", _MEND),
    "run_without_session": ("runs without their session", _MEND),
    "fired_without_task": ("schedules with a fired occurrence without its task", _MEND),
    "reserved_for_nothing": ("reservations of money for tasks that are not there", _MEND),
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
    return [*keys(instance, progress), *invariants(instance, alive), *missing]


def integrity(instance: Instance, progress: Progress = silent) -> Iterator[Finding]:
    """Every table read whole."""
    try:
        names = tables(instance, "agentd")
    except StoreError as error:
        yield Finding("readable", 1, f"the list of tables: {error.message}", _SALVAGE)
        return
    for done, name in enumerate(names):
        progress(f"reading {name}", done, len(names))
        try:
            yield from _read_whole(instance, name)
        except StoreError as error:
            yield Finding("readable", 1, f"table {name}: {error.message}", _SALVAGE, (name,))
    progress("reading", len(names), len(names))


def missing_files(instance: Instance, archive: Path) -> Iterator[Finding]:
    """Files of the archive that count and are not there."""
    for batch in batches_in(instance.run(archived_batches())):
        paths = (archive_file(archive, table, batch.id) for table in batch.tables)
        lost = tuple(str(path) for path in paths if not path.is_file())
        if lost:
            yield Finding(
                "archive",
                len(lost),
                f"files of the archive are missing: batch {batch.id}",
                "Put them back from a copy. Without them: delete that row of `archives` with "
                "agentd sql --write.",
                lost,
            )


def keys(instance: Instance, progress: Progress = silent) -> Iterator[Finding]:
    """Every row of every table looked up by its key. Only for a copy: it writes, and rolls back."""
    names = tables(instance, "agentd")
    for done, name in enumerate(names):
        progress(f"looking up {name}", done, len(names))
        columns = _key(instance, name)
        if not columns:
            continue
        try:
            missing = _not_found_by_key(instance, name, columns)
        except StoreError as error:
            yield Finding("keys", 1, f"table {name}: {error.message}", _BUILD_ANEW, (name,))
            continue
        if missing:
            said = f"table {name}: rows that a scan finds and their key does not"
            yield Finding("keys", missing, said, _BUILD_ANEW, (name,))


def _read_whole(instance: Instance, name: str) -> Iterator[Finding]:
    # The hash makes DuckDB read every block, and compare its checksum.
    sql = f"SELECT count(*) AS listed, count(hash(each)) AS read FROM {named(name)} AS each"  # noqa: S608 - a name of the catalog, quoted
    counted = instance.run(sql)[0]
    if counted["listed"] != counted["read"]:
        said = f"table {name}: {counted['listed']} rows, {counted['read']} by scan"
        yield Finding("readable", 1, said, _SALVAGE, (name,))


def _not_found_by_key(instance: Instance, name: str, columns: list[str]) -> int:
    table, first = named(name), named(columns[0])
    with instance.rolled_back():
        # To change a key, even to itself, DuckDB looks all of them up and reads the whole index.
        instance.run(f"UPDATE {table} SET {first} = {first}")  # noqa: S608 - same
    if len(columns) > 1:
        return 0  # DuckDB finds rows by keys of one column only
    found = instance.run(f"SELECT {first} AS key FROM {table}")  # noqa: S608 - same
    missing = 0
    for start in range(0, len(found), _LOOKED_UP):
        some = [quoted(str(row["key"])) for row in found[start : start + _LOOKED_UP]]
        sql = f"SELECT count(*) FROM {table} WHERE {first} IN ({', '.join(some)})"  # noqa: S608 - same
        missing += len(some) - int(instance.value(sql))
    return missing


def _key(instance: Instance, name: str) -> list[str]:
    """The columns of a table's primary key."""
    known = (
        "SELECT constraint_column_names AS columns FROM duckdb_constraints() "
        "WHERE database_name = 'agentd' AND table_name = $name AND constraint_type = 'PRIMARY KEY'"
    )
    found = instance.run(known, {"name": name})
    return list(found[0]["columns"]) if found else []


def invariants(instance: Instance, alive: Collection[str] | None) -> Iterator[Finding]:
    """What sql/checks.sql finds. alive: None leaves out what depends on it."""
    for name, query in load("checks").items():
        text, hint = MEANINGS[name]
        depends = "$alive" in query.sql
        if depends and alive is None:
            continue
        uses = {"alive": list(alive or ())} if depends else None
        ids = [str(row["id"]) for row in instance.run(query.sql, uses)]
        if ids:
            yield Finding(name, len(ids), text, hint, tuple(ids[:_MOST_IDS]))
