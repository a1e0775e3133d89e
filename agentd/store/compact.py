"""Writes the database anew, without free blocks and with fresh keys, in its own place."""

from dataclasses import dataclass
from pathlib import Path

from agentd.domain.errors import StoreError, StoreFailed
from agentd.store.files import Progress, companions, publish, silent, size_bytes, standing_still
from agentd.store.instance import Instance, named, tables
from agentd.store.snapshot import bring_up_to_date, private_folder


@dataclass(frozen=True, slots=True)
class Compacted:
    before_bytes: int
    after_bytes: int


def compact(path: Path, *, busy_s: float, progress: Progress = silent) -> Compacted:
    """Other processes wait meanwhile; daemons go on with the new file. Raises StoreError.

    A crash leaves the old file or the new one, both whole.
    """
    bring_up_to_date(path, busy_s)
    with standing_still(path, busy_s), private_folder(path.parent) as folder:
        before = size_bytes(path)
        new = folder / "agentd.duckdb"
        with Instance(folder) as instance:
            instance.attach(path, "agentd")
            instance.attach(new, "compacted")
            _copy_tables(instance, progress)
            instance.detach("compacted")
            instance.detach("agentd")
        if companions(path) or companions(new):
            # A log that is left beside another file would be lost, or refused.
            raise StoreFailed("the log could not be merged; nothing was changed")
        publish(new, path)
        return Compacted(before, size_bytes(path))


def _copy_tables(instance: Instance, progress: Progress) -> None:
    """Shapes first, then table by table."""
    instance.run("COPY FROM DATABASE agentd TO compacted (SCHEMA)")
    names = tables(instance, "agentd")
    for done, name in enumerate(names):
        progress(f"copying {name}", done, len(names))
        old, new = f"agentd.main.{named(name)}", f"compacted.main.{named(name)}"
        instance.run(f"INSERT INTO {new} SELECT * FROM {old}")  # noqa: S608 - names of the catalog, quoted
        counts = [instance.value(f"SELECT count(*) FROM {each}") for each in (old, new)]  # noqa: S608 - same
        if counts[0] != counts[1]:
            raise StoreError(
                f"table {name}: {counts[1]} of {counts[0]} rows could be copied",
                hint="Nothing was changed. Try: agentd db check",
            )
    progress("copying", len(names), len(names))
