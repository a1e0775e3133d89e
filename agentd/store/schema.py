"""Brings the tables to the newest shape.

`migrations/NNNN_<what>.sql`, in numeric order, under the lease.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from agentd.domain.errors import StoreError, StoreUnusable
from agentd.store.hub import Hub


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    statements: tuple[str, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, in the order of their numbers."""
    found: list[Migration] = []
    for file in files("agentd.store").joinpath("migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql") and number.isdecimal():
            lines = file.read_text(encoding="utf-8").splitlines()
            text = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
            statements = tuple(part.strip() for part in text.split(";") if part.strip())
            found.append(Migration(int(number), name, statements))
    return tuple(sorted(found, key=lambda migration: migration.number))


def admit(hub: Hub) -> None:
    """Make a just attached database usable. Raises StoreUnusable when it is newer, or not ours."""
    newest = migrations()[-1].number
    if hub.known_shape == str(newest):
        return
    _bring_to(newest, hub)
    hub.known_shape = str(newest)


def _bring_to(newest: int, hub: Hub) -> None:
    version = _version(hub)
    if version == newest:
        return
    if version > newest:
        raise StoreUnusable(
            f"{hub.path} was made by a newer agentd (schema {version}, this one knows {newest})",
            hint="Install that newer agentd (pip install --upgrade agentd). Nothing was changed.",
        )
    for migration in migrations():
        if migration.number > version:
            _apply(hub, migration)


def _version(hub: Hub) -> int:
    """0: an empty database."""
    try:
        return int(hub.run("SELECT max(version) AS newest FROM schema_versions")[0]["newest"])
    except StoreError:
        _refuse_foreign_tables(hub)
        return 0


def _refuse_foreign_tables(hub: Hub) -> None:
    tables = {
        row["table_name"]
        for row in hub.run(
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'agentd'"
        )
    }
    if tables:
        raise StoreUnusable(
            f"{hub.path} is a DuckDB database, but not one of agentd (it has {min(tables)!r})",
            hint="Move that file away, or name another home with --home. Nothing was changed.",
        )


def _apply(hub: Hub, migration: Migration) -> None:
    hub.begin()
    try:
        for statement in migration.statements:
            hub.run(statement)
        hub.run(
            "INSERT INTO schema_versions (version, name) VALUES ($version, $name)",
            {"version": migration.number, "name": migration.name},
        )
    except BaseException:
        hub.rollback()
        raise
    hub.commit()
