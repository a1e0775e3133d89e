"""Saves what can be read of a damaged database into a new one.

First the log, up to its first damaged entry; then table by table; where a block is damaged, the
rows around it: a range of rows that can not be read is halved until the damage stands alone.
"""

import contextlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agentd.domain.errors import StoreError, StoreUnusable
from agentd.store.backups import stamp
from agentd.store.files import Progress, companions, copy, remove, replace, silent, standing_still
from agentd.store.instance import Instance, named, tables
from agentd.store.snapshot import private_folder

_TRIAL = "trial.duckdb"
_PROBES = 16
_VECTOR_ROWS = 2048  # DuckDB reads so many at a time: a smaller range reads the same blocks


@dataclass(frozen=True, slots=True)
class Saved:
    """`lost`: rows that can not be read, or at the most so many."""

    table: str
    rows: int
    lost: int


@dataclass(frozen=True, slots=True)
class Salvage:
    """`log_bytes_lost`: of the newest writes, which were not merged yet. `kept`: the old file."""

    tables: list[Saved]
    log_bytes_lost: int
    kept: Path

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.tables)


def salvage(path: Path, *, busy_s: float, now: datetime, progress: Progress = silent) -> Salvage:
    """Put what can be read in the place of the database. Raises StoreUnusable when that is nothing.

    Others wait meanwhile. The old file stays, with its log.
    """
    with standing_still(path, busy_s), private_folder(path.parent) as folder:
        old, new = folder / "old.duckdb", folder / "agentd.duckdb"
        copy(path, old, progress, forgiving=True)
        log_bytes_lost = _mend_log(old, folder, path)
        with Instance(folder) as instance:
            instance.attach(old, "old", read_only=True)
            instance.attach(new, "agentd")
            saved = [_save(instance, name, progress) for name in _copy_shapes(instance)]
            instance.detach("agentd")
        kept = path.with_name(f"{path.name}.before-repair-{stamp(now)}")
        replace(new, path, keep_as=kept)
    return Salvage(saved, log_bytes_lost, kept)


def _mend_log(old: Path, folder: Path, path: Path) -> int:
    """Cut the log before what is damaged. Bytes cut off. Raises StoreUnusable."""
    problem = _problem(old, path)
    if problem is None:
        return 0
    logs = companions(old)
    for log in logs:
        whole = log.read_bytes()
        opens, fails = 0, len(whole)
        if _problem_with(old, log, whole[:0], folder) is not None:
            continue  # not this one's fault
        while fails - opens > 1:
            half = (opens + fails) // 2
            if _problem_with(old, log, whole[:half], folder) is None:
                opens = half
            else:
                fails = half
        log.write_bytes(whole[:opens])
        return len(whole) - opens
    raise StoreUnusable(
        f"nothing of the database can be read: {problem}",
        hint="Restore a backup: agentd db restore FILE. Nothing was changed.",
    )


def _problem_with(old: Path, log: Path, text: bytes, folder: Path) -> str | None:
    trial = folder / _TRIAL
    remove(trial)
    trial.hardlink_to(old)
    for each in companions(old):
        beside = trial.with_name(trial.name + each.name.removeprefix(old.name))
        beside.write_bytes(text if each == log else each.read_bytes())
    return _problem(trial)


def _problem(path: Path, shown: Path | None = None) -> str | None:
    """Why it can not be opened. Reading only: opening changes nothing."""
    with Instance() as instance:
        try:
            instance.attach(path, "old", read_only=True, shown=shown)
            tables(instance, "old")
        except StoreError as error:
            return error.message
    return None


def _copy_shapes(instance: Instance) -> list[str]:
    """The same tables and keys, empty."""
    instance.run("COPY FROM DATABASE old TO agentd (SCHEMA)")
    return tables(instance, "old")


def _save(instance: Instance, name: str, progress: Progress) -> Saved:
    total = _row_ids(instance, name)
    rows = lost = 0
    ranges = [(0, total)]
    while ranges:
        first, end = ranges.pop()
        progress(f"saving {name}", rows + lost, total)
        try:
            rows += _copy_rows(instance, name, "rowid >= $first AND rowid < $end", first, end)
        except StoreError:
            if end - first <= _VECTOR_ROWS:
                saved, missed = _save_singly(instance, name, first, end)
                rows, lost = rows + saved, lost + missed
            else:
                half = first + (end - first + _VECTOR_ROWS) // _VECTOR_ROWS // 2 * _VECTOR_ROWS
                ranges += [(half, end), (first, half)]
    return Saved(name, rows, lost)


def _row_ids(instance: Instance, name: str) -> int:
    """All rows have smaller ids; after deletions some ids have no row."""
    return int(
        instance.value(f"SELECT coalesce(max(rowid) + 1, 0) FROM old.main.{named(name)}")  # noqa: S608 - a name of the catalog, quoted
    )


def _save_singly(instance: Instance, name: str, first: int, end: int) -> tuple[int, int]:
    """Rows that share a damaged block with others: how many were saved, and lost.

    A row that is found by its key is read alone. DuckDB does that for keys of one column only.
    """
    key = _key(instance, name)
    if key is None:
        return 0, end - first
    listing = f"SELECT {key} AS key FROM old.main.{named(name)} WHERE rowid >= $a AND rowid < $b"  # noqa: S608 - same
    try:
        keys = [row["key"] for row in instance.run(listing, {"a": first, "b": end})]
    except StoreError:
        return 0, end - first
    # What is damaged lies under all of them, or under a few: some tell, most questions are spared.
    some = keys[:: max(1, len(keys) // _PROBES)]
    if not any(_readable(instance, name, key, each) for each in some):
        return 0, len(keys)
    saved = 0
    for each in keys:
        with contextlib.suppress(StoreError):
            saved += _copy_rows(instance, name, f"{key} = $first AND $end = 0", each, 0)
    return saved, len(keys) - saved


def _readable(instance: Instance, name: str, key: str, value: object) -> bool:
    sql = f"SELECT * FROM old.main.{named(name)} WHERE {key} = $value"  # noqa: S608 - same
    try:
        return bool(instance.run(sql, {"value": value}))
    except StoreError:
        return False


def _key(instance: Instance, name: str) -> str | None:
    found = instance.run(
        "SELECT constraint_column_names AS names FROM duckdb_constraints() "
        "WHERE database_name = 'old' AND table_name = $name AND constraint_type = 'PRIMARY KEY'",
        {"name": name},
    )
    names: list[str] = found[0]["names"] if found else []
    return named(names[0]) if len(names) == 1 else None


def _copy_rows(instance: Instance, name: str, where: str, first: object, end: int) -> int:
    table = named(name)
    sql = f"INSERT INTO agentd.main.{table} SELECT * FROM old.main.{table} WHERE {where}"  # noqa: S608 - same
    return int(instance.value(sql, {"first": first, "end": end}))
