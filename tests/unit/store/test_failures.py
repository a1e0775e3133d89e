"""Whatever is wrong with the file: a clear error that says what to do, and nothing harmed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from agentd.domain.clock import SystemClock
from agentd.domain.errors import StoreBusy, StoreError, StoreFailed, StoreUnusable
from agentd.domain.task import Limits, NewTask
from agentd.store.filesystem import refuse_network_filesystem
from agentd.store.hub import translate
from agentd.store.runs import RunStore
from agentd.store.schema import migrations
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.conftest import DAEMON

_NOBODY = 65534


async def failure(path: Path, busy_s: float = 1) -> StoreError:
    """What opening the database at `path` gives."""
    async with Store(path, busy_s=busy_s) as store:
        with pytest.raises(StoreError) as caught:
            await TaskStore(store, SystemClock()).list()
    return caught.value


async def filled(path: Path, count: int = 3) -> list[str]:
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        return [(await tasks.enqueue(NewTask(prompt=f"{n}"))).task.id for n in range(count)]


async def found(path: Path) -> set[str]:
    async with Store(path) as store:
        return {task.id for task in await TaskStore(store, SystemClock()).list()}


async def test_a_database_of_a_newer_agentd(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_versions VALUES (999, 'from the future')")
    before = path.read_bytes()
    error = await failure(path)
    assert isinstance(error, StoreUnusable)
    assert "made by a newer agentd" in error.message
    assert "pip install --upgrade" in (error.hint or "")
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    path.write_bytes(b"a letter to my aunt, " * 1000)
    error = await failure(path)
    assert isinstance(error, StoreUnusable)
    assert "is not an agentd database" in error.message
    assert "--home" in (error.hint or "")
    assert path.read_bytes() == b"a letter to my aunt, " * 1000


async def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE invoices (id INTEGER)")
    error = await failure(path)
    assert isinstance(error, StoreUnusable)
    assert "'invoices'" in error.message
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("invoices",)]


_CRASH = """
import os, sys, anyio
from pathlib import Path
from agentd.domain.clock import SystemClock
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

async def main():
    store = Store(Path(sys.argv[1]))
    tasks = TaskStore(store, SystemClock())
    for number in range(20):
        print((await tasks.enqueue(NewTask(prompt="x" * 500))).task.id, flush=True)
    os._exit(1)  # with the log not merged

anyio.run(main)
"""


def crashed(path: Path) -> list[str]:
    """A database whose process died with writes in its log; the acknowledged ids."""
    done = subprocess.run(
        [sys.executable, "-c", _CRASH, str(path)], capture_output=True, text=True, check=False
    )
    assert path.with_name(path.name + ".wal").exists()
    return done.stdout.split()


async def test_a_log_that_a_crash_left_is_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    ids = crashed(path)
    assert len(ids) == 20
    assert await found(path) == set(ids)


async def test_a_damaged_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    crashed(path)
    log = path.with_name(path.name + ".wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    before = path.read_bytes(), log.read_bytes()
    error = await failure(path)
    assert isinstance(error, StoreUnusable)
    assert "write-ahead log" in error.message
    assert ".wal aside" in (error.hint or "")
    assert (path.read_bytes(), log.read_bytes()) == before


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path, 50)
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) - 4096, 97):
        data[place] ^= 0xFF
    path.write_bytes(data)
    error = await failure(path)
    assert isinstance(error, StoreUnusable)
    assert "damaged" in error.message or "not an agentd database" in error.message


_FULL = """
import resource, signal, sys, anyio
from pathlib import Path
from agentd.domain.clock import SystemClock
from agentd.domain.errors import StoreFailed
from agentd.domain.task import NewTask
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

async def main():
    async with Store(Path(sys.argv[1])) as store:
        tasks = TaskStore(store, SystemClock())
        print((await tasks.enqueue(NewTask(prompt="first"))).task.id)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 1 << 40))
        try:
            for number in range(1000):
                print((await tasks.enqueue(NewTask(prompt="x" * 20_000))).task.id)
        except StoreFailed as error:
            print(error.message, file=sys.stderr)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))
        print((await tasks.enqueue(NewTask(prompt="there is room again"))).task.id)

anyio.run(main)
"""


async def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    """The limit on the size of files stands for the disk: the write fails in the same place."""
    path = tmp_path / "a.duckdb"
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert "may not grow any more" in done.stderr
    ids = done.stdout.split()
    assert len(ids) > 5
    async with Store(path) as store:
        tasks = await TaskStore(store, SystemClock()).list(limit=2000)
    assert {task.id for task in tasks} == set(ids)


@pytest.mark.parametrize(
    ("words", "kind", "says"),
    [
        ("Could not write file: No space left on device", StoreFailed, "is full"),
        ("Cannot open file: Read-only file system", StoreUnusable, "read-only"),
        ("Cannot open file: Permission denied", StoreUnusable, "may not open"),
        ("created with a newer version of DuckDB", StoreUnusable, "newer DuckDB"),
    ],
)
def test_what_the_engine_says_is_told_in_words_for_people(
    words: str, kind: type[StoreError], says: str
) -> None:
    error = translate(duckdb.IOException(words), Path("/x/a.duckdb"))
    assert isinstance(error, kind)
    assert says in error.message
    assert words in error.message
    assert error.hint


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that an unprivileged user can reach, and this process without its privileges."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = os.geteuid() == 0
        if root:
            os.seteuid(_NOBODY)
        else:
            folder.chmod(0o555)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


async def test_a_folder_that_may_not_be_written(public_folder: Path) -> None:
    error = await failure(public_folder / "a.duckdb")
    assert isinstance(error, StoreUnusable)
    assert "Permission denied" in error.message
    assert str(public_folder) in (error.hint or "")
    assert not list(public_folder.iterdir())


_MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/share nfs4 rw 0 0
none /mnt/share/local tmpfs rw 0 0
user@host: /mnt/with\\040space fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/a.duckdb", None),
        ("/mnt/share/a.duckdb", "nfs4"),
        ("/mnt/share/local/a.duckdb", None),
        ("/mnt/shared/a.duckdb", None),
        ("/mnt/with space/a.duckdb", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_refused(path: str, kind: str | None, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(_MOUNTS)
    if kind is None:
        refuse_network_filesystem(Path(path), mounts)
        return
    with pytest.raises(StoreUnusable) as caught:
        refuse_network_filesystem(Path(path), mounts)
    assert kind in caught.value.message
    assert "local disk" in (caught.value.hint or "")


async def test_a_fatal_error_reopens_the_database_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        ids = [(await tasks.enqueue(NewTask(prompt="before"))).task.id for _ in range(5)]
        async with store.transaction() as conn:
            await conn.fetch("PRAGMA debug_checkpoint_abort='after_free_list_write'")
        with pytest.raises(StoreError, match="invalidated"):
            await store._engine.call(lambda hub: hub.run("CHECKPOINT agentd"))
        ids.append((await tasks.enqueue(NewTask(prompt="after"))).task.id)
        assert {task.id for task in await tasks.list()} == set(ids)
    assert await found(path) == set(ids)


_HOLD = """
import sys, anyio
from pathlib import Path
from agentd.store.store import Store

async def main():
    async with Store(Path(sys.argv[1])) as store, store.transaction() as conn:
        await conn.fetch("SELECT 1")
        print("held", flush=True)
        await anyio.sleep(30)

anyio.run(main)
"""


async def test_a_process_that_hangs_with_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        error = await failure(path, busy_s=0.2)
        holder.kill()
    assert isinstance(error, StoreBusy)
    assert f"process {holder.pid} " in error.message
    assert await found(path) == set()


async def test_another_program_that_has_the_file_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    code = (
        "import duckdb, sys\nc = duckdb.connect(sys.argv[1])\nprint('open', flush=True)\n"
        "sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        error = await failure(path, busy_s=0.2)
        stranger.communicate(b"\n")
    assert isinstance(error, StoreBusy)
    assert str(stranger.pid) in error.message


def test_migrations_come_in_numeric_order() -> None:
    numbers = [migration.number for migration in migrations()]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


async def test_a_migration_runs_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentd.store import schema  # noqa: PLC0415 - what is replaced

    path = tmp_path / "a.duckdb"
    await filled(path)
    known = [migration.number for migration in migrations()]
    more, fill = known[-1] + 1, known[-1] + 9
    later = (
        *migrations(),
        schema.Migration(more, "more", ("CREATE TABLE more (n INTEGER)",)),
        schema.Migration(fill, "fill", ("INSERT INTO more VALUES (1)",)),
    )
    monkeypatch.setattr(schema, "migrations", lambda: later)
    for _ in range(2):
        async with Store(path) as store, store.transaction() as conn:
            assert await conn.fetch_value("SELECT count(*) FROM more") == 1
            rows = await conn.fetch("SELECT version FROM schema_versions ORDER BY version")
            assert [row["version"] for row in rows] == [*known, more, fill]


async def test_a_migration_that_fails_leaves_the_shape_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentd.store import schema  # noqa: PLC0415 - what is replaced

    path = tmp_path / "a.duckdb"
    ids = await filled(path)
    newer = migrations()[-1].number + 1
    broken = schema.Migration(newer, "broken", ("CREATE TABLE half (n INTEGER)", "SELECT nonsense"))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: (*migrations(), broken))
        await failure(path)
    assert await found(path) == set(ids)
    with duckdb.connect(str(path)) as connection:
        assert ("half",) not in connection.execute("SHOW TABLES").fetchall()


async def test_a_queue_of_the_first_shape_goes_on_in_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentd.store import schema  # noqa: PLC0415 - what is replaced

    path, first = tmp_path / "a.duckdb", migrations()[:1]
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: first)
        async with Store(path) as store, store.transaction() as conn:
            await conn.execute(
                "INSERT INTO tasks (id, session_id, prompt, priority, state, has_predecessors, "
                "after_any, attempt, token, retryable, enqueued_by, created_at, updated_at) "
                "SELECT 'old', 'old', 'x', 'medium', 'pending', FALSE, FALSE, 0, 0, FALSE, 'cli', "
                "now(), now()"
            )
    async with Store(path) as store:
        (claim,) = (await RunStore(store, SystemClock()).glance(DAEMON, limit=1)).claims
        assert (claim.task.id, claim.task.limits) == ("old", Limits())
