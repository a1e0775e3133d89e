"""Backups: a copy of the database, proved good before it gets its name; and the way back."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agentd.domain.errors import NotFound, StoreError, StoreUnusable
from agentd.store.checks import Finding, integrity, invariants
from agentd.store.files import (
    Progress,
    companions,
    copy,
    publish,
    replace,
    silent,
    size_bytes,
    standing_still,
)
from agentd.store.instance import Instance, tables
from agentd.store.schema import migrations
from agentd.store.snapshot import bring_up_to_date, private_folder

_PREFIX = "agentd-"


def stamp(now: datetime) -> str:
    """A moment as part of a file's name; sorts as the moments do."""
    return now.strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"


def default_name(now: datetime) -> str:
    return f"{_PREFIX}{stamp(now)}.duckdb"


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    size_bytes: int
    schema: int
    tasks: int
    events: int


def back_up(path: Path, target: Path, *, busy_s: float, progress: Progress = silent) -> Backup:
    """Copy the database to `target`, which exists only when it is whole and on the disk.

    Others wait only while the bytes are copied. Raises StoreError, FileExistsError.
    """
    if target.exists():
        raise FileExistsError(17, "there is such a file already", str(target))
    with private_folder(target.parent) as folder:
        new = folder / "agentd.duckdb"
        with standing_still(path, busy_s):
            copy(path, new, progress)
        made = _proved(new, path, target, progress)
        publish(new, target)
    return made


def _proved(new: Path, path: Path, target: Path, progress: Progress) -> Backup:
    """Merge the log into the copy, and read the whole of it."""
    with Instance() as instance:
        instance.attach(new, "agentd", shown=path)
        instance.run("USE agentd")
        damages = list(integrity(instance, progress))
        if damages:
            raise StoreUnusable(
                f"the database is damaged, so this would be no backup: {damages[0].text}",
                hint=damages[0].hint,
            )
        facts = {
            "schema": int(instance.value("SELECT max(version) FROM schema_versions")),
            "tasks": int(instance.value("SELECT count(*) FROM tasks")),
            "events": int(instance.value("SELECT count(*) FROM events")),
        }
        instance.detach("agentd")
    if companions(new):
        raise StoreError("the log of the backup could not be merged into it")
    return Backup(target, new.stat().st_size, **facts)


def thin_out(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep` backups of a folder; those that were removed."""
    old = sorted(folder.glob(f"{_PREFIX}*Z.duckdb"), reverse=True)[keep:]
    for each in old:
        each.unlink()
    return old


@dataclass(frozen=True, slots=True)
class Restored:
    """`kept`: where the replaced database is now, if there was one."""

    path: Path
    schema: int
    size_bytes: int
    kept: Path | None
    findings: list[Finding]


def restore(
    backup: Path,
    path: Path,
    *,
    busy_s: float,
    now: datetime,
    refuse: Callable[[], None] = lambda: None,
    progress: Progress = silent,
) -> Restored:
    """Put a backup in the place of the database, once it is proved to be whole and ours.

    refuse: raises when somebody works on the home; asked while nobody can begin to.
    Raises StoreUnusable, StoreBusy, NotFound.
    """
    if not backup.is_file():
        raise NotFound("backup", str(backup))
    if path.exists() and backup.samefile(path):
        raise StoreUnusable(f"{backup} is the database itself", hint="Name a backup of it.")
    with private_folder(path.parent) as folder:
        new = folder / "agentd.duckdb"
        with standing_still(backup, busy_s) if _is_live(backup) else contextlib.nullcontext():
            copy(backup, new, progress)
        schema = _schema(new, backup)
        bring_up_to_date(new, busy_s)
        findings = _inspected(new, backup, progress)
        kept = _swap(new, path, busy_s=busy_s, now=now, refuse=refuse)
    return Restored(path, schema, size_bytes(path), kept, findings)


def _is_live(backup: Path) -> bool:
    """Another home's database: somebody may work on it."""
    return backup.with_name(backup.name + ".lease").exists()


def _schema(new: Path, backup: Path) -> int:
    """The backup's version. Raises StoreUnusable when it is damaged, newer or not ours."""
    newest = migrations()[-1].number
    with Instance() as instance:
        try:
            instance.attach(new, "agentd", shown=backup)
            ours = {"schema_versions", "tasks", "events"} <= set(tables(instance, "agentd"))
            version = (
                int(instance.value("SELECT max(version) FROM agentd.schema_versions"))
                if ours
                else 0
            )
        except StoreError as error:
            raise StoreUnusable(
                f"{backup} can not be restored: {error.message}",
                hint="Take another backup. Nothing was changed.",
            ) from error
    if not ours or version > newest:
        what = f"was made by a newer agentd (schema {version})" if ours else "is none of agentd's"
        raise StoreUnusable(f"{backup} {what}", hint="Nothing was changed.")
    return version


def _inspected(new: Path, backup: Path, progress: Progress) -> list[Finding]:
    """What is to be said about its rows. Raises StoreUnusable when they can not be read."""
    with Instance() as instance:
        instance.attach(new, "agentd", shown=backup)
        instance.run("USE agentd")
        damages = list(integrity(instance, progress))
        # What a daemon ran when the backup was made is taken over by the next one.
        found = [] if damages else list(invariants(instance, None))
        instance.detach("agentd")
    if damages:
        raise StoreUnusable(
            f"the backup is damaged: {damages[0].text}",
            hint="Take another backup. Nothing was changed.",
        )
    return found


def _swap(
    new: Path, path: Path, *, busy_s: float, now: datetime, refuse: Callable[[], None]
) -> Path | None:
    kept = path.with_name(f"{path.name}.before-restore-{stamp(now)}")
    with standing_still(path, busy_s, must_exist=False):
        refuse()
        there = path.exists()
        if there:
            _merge_log(path)
        replace(new, path, keep_as=kept)
    return kept if there else None


def _merge_log(path: Path) -> None:
    """So that the old file is whole by itself; a damaged one is kept with its log as it is."""
    with contextlib.suppress(StoreError), Instance() as instance:
        instance.attach(path, "old")
        instance.detach("old")
