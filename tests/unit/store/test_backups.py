"""A backup is whole or not there; a restore leaves the new database or the old (backups.py)."""

import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import duckdb
import pytest

from agentd.domain.errors import NotFound, Refused, StoreBusy, StoreUnusable
from agentd.store.backups import back_up, restore, thin_out
from agentd.store.compact import compact
from agentd.store.hub import BLOCK_SIZE
from agentd.store.instance import Instance
from agentd.store.store import Store
from tests.store_filling import filled, ids_in, killed_while_writing
from tests.unit.store.test_sharing import writer

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def damage_events(path: Path, target: Path) -> None:
    """Write a copy in which a byte of the journal's rows has flipped."""
    with Instance() as instance:
        instance.attach(path, "a", read_only=True)
        instance.run("USE a")
        block = instance.value("SELECT max(block_id) FROM pragma_storage_info('events')")
    data = bytearray(path.read_bytes())
    data[3 * 4096 + block * BLOCK_SIZE + 100] ^= 0xFF
    target.write_bytes(data)


def left_over(folder: Path) -> set[str]:
    """What lies in a folder besides databases, backups and the lease's files."""
    usual = (".duckdb", ".turn", ".lease")
    return {each.name for each in folder.iterdir() if not each.name.endswith(usual)}


async def test_a_backup_holds_everything_and_opens_by_itself(tmp_path: Path) -> None:
    path, target = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    known = await filled(path)
    made = back_up(path, target, busy_s=5)
    assert (made.tasks, made.events, made.size_bytes) == (5, 60, target.stat().st_size)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with duckdb.connect(str(target), read_only=True) as connection:
        assert {row[0] for row in connection.execute("SELECT id FROM tasks").fetchall()} == known
    assert left_over(tmp_path) == set()


async def test_what_was_acknowledged_before_is_in_the_backup_while_others_write(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path, 1)
    with writer(path, 60, "busy") as busy:
        assert busy.stdout is not None
        for number in range(3):
            acknowledged = int(busy.stdout.readline())
            target = tmp_path / f"b{number}.duckdb"
            back_up(path, target, busy_s=5)
            assert len(await ids_in(target)) >= acknowledged + 2
        busy.communicate(timeout=15)
        assert busy.returncode == 0
    assert len(await ids_in(path)) == 61


async def test_a_backup_of_a_log_that_was_never_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    killed_while_writing(path, 1)
    assert path.with_name("a.duckdb.wal").stat().st_size > 0
    back_up(path, tmp_path / "b.duckdb", busy_s=5)
    assert len(await ids_in(tmp_path / "b.duckdb")) == 1


async def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path, 3, turns=2000)
    damage_events(path, path)
    with pytest.raises(StoreUnusable, match="would be no backup"):
        back_up(path, tmp_path / "b.duckdb", busy_s=5)
    assert not (tmp_path / "b.duckdb").exists()
    assert left_over(tmp_path) == set()


async def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path, target = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    await filled(path)
    target.write_text("mine")
    with pytest.raises(FileExistsError):
        back_up(path, target, busy_s=5)
    assert target.read_text() == "mine"


async def test_another_program_with_the_file_open_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    code = "import duckdb,sys; c=duckdb.connect(sys.argv[1]); print(1,flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        with pytest.raises(StoreBusy, match="another program"):
            back_up(path, tmp_path / "b.duckdb", busy_s=5)
        stranger.communicate(b"")


def test_the_newest_backups_are_kept(tmp_path: Path) -> None:
    names = [f"agentd-2026010{day}T000000Z.duckdb" for day in range(1, 6)]
    for name in [*names, "agentd-mine.duckdb", "other.duckdb"]:
        (tmp_path / name).touch()
    assert {path.name for path in thin_out(tmp_path, 2)} == set(names[:3])
    assert {path.name for path in tmp_path.iterdir()} == {
        *names[3:],
        "agentd-mine.duckdb",
        "other.duckdb",
    }


async def test_a_restore_brings_back_what_was_and_keeps_what_is(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    before = await filled(path)
    back_up(path, backup, busy_s=5)
    after = before | await filled(path, 2)
    done = restore(backup, path, busy_s=5, now=_NOW)
    assert await ids_in(path) == before
    assert done.kept is not None
    assert done.kept.name == "a.duckdb.before-restore-20260304T050607.000Z"
    assert await ids_in(done.kept) == after
    assert (await ids_in(backup), done.findings) == (before, [])


async def test_a_restore_into_an_empty_home(tmp_path: Path) -> None:
    known = await filled(tmp_path / "a.duckdb")
    back_up(tmp_path / "a.duckdb", tmp_path / "b.duckdb", busy_s=5)
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "a.duckdb"
    assert restore(tmp_path / "b.duckdb", path, busy_s=5, now=_NOW).kept is None
    assert await ids_in(path) == known


async def test_a_restore_in_place_of_a_file_that_does_not_open(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    known = await filled(path)
    back_up(path, backup, busy_s=5)
    path.write_bytes(b"rubbish")
    done = restore(backup, path, busy_s=5, now=_NOW)
    assert await ids_in(path) == known
    assert done.kept is not None
    assert done.kept.read_bytes() == b"rubbish"


async def test_what_is_no_good_backup_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    known = await filled(path, 3, turns=1000)
    bad = {name: tmp_path / f"{name}.duckdb" for name in ("foreign", "newer", "cut", "flipped")}
    with duckdb.connect(str(bad["foreign"])) as connection:
        connection.execute("CREATE TABLE mine (n INTEGER)")
    back_up(path, bad["newer"], busy_s=5)
    with duckdb.connect(str(bad["newer"])) as connection:
        connection.execute("INSERT INTO schema_versions VALUES (9999, 'later')")
    bad["cut"].write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    damage_events(path, bad["flipped"])
    for backup in bad.values():
        with pytest.raises(StoreUnusable) as caught:
            restore(backup, path, busy_s=5, now=_NOW)
        assert "Nothing was changed" in (caught.value.hint or "")
        assert str(backup) in caught.value.message or "backup is damaged" in caught.value.message
    with pytest.raises(NotFound):
        restore(tmp_path / "none.duckdb", path, busy_s=5, now=_NOW)
    with pytest.raises(StoreUnusable, match="itself"):
        restore(path, path, busy_s=5, now=_NOW)
    assert await ids_in(path) == known
    assert left_over(tmp_path) == set()


async def test_whoever_objects_stops_a_restore(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.duckdb", tmp_path / "b.duckdb"
    await filled(path)
    back_up(path, backup, busy_s=5)
    more = await filled(path, 1)

    def refuse() -> None:
        raise Refused("daemons work on this home")

    with pytest.raises(Refused):
        restore(backup, path, busy_s=5, now=_NOW, refuse=refuse)
    assert more < await ids_in(path)


async def test_a_store_that_is_open_goes_on_with_the_compacted_file(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    async with Store(path) as store:
        known = await filled(path, 30, turns=300)
        async with store.transaction() as conn:
            await conn.execute("DELETE FROM events")
            await conn.execute("DELETE FROM model_calls")
        inode = path.stat().st_ino
        done = await anyio.to_thread.run_sync(lambda: compact(path, busy_s=5))
        assert path.stat().st_ino != inode
        assert done.after_bytes < done.before_bytes / 2
        async with store.transaction() as conn:
            assert {row["id"] for row in await conn.fetch("SELECT id FROM tasks")} == known
            await conn.execute("DELETE FROM tasks")
    assert await ids_in(path) == set()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert left_over(tmp_path) == set()
