"""Whatever is killed in the middle of the care of a database, its home has one, and all is in it.

The process is killed at each of its steps in the file system, one after another: a rename, a link,
a removal, a new file.
"""

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import os, shutil, signal, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
import anyio
from agentd.domain.clock import SystemClock
from agentd.store.archives import ArchiveStore
from agentd.store.asking import answer, reading
from agentd.store.backups import back_up, restore
from agentd.store.checks import integrity, invariants, missing_files
from agentd.store.compact import compact
from agentd.store.salvage import salvage
from agentd.store.snapshot import snapshot
from agentd.store.store import Store
from tests.store_filling import filled

what, home = sys.argv[1], Path(sys.argv[2])
ready, now = home.with_name("ready"), datetime.now(UTC)
db, backup = home / "agentd.duckdb", home / "backup.duckdb"
STEPS = {"os.rename", "os.link", "os.remove", "open"}

def in_child(work):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = work() or 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(pid, 0)[1]

def prepare():
    ready.mkdir()
    anyio.run(lambda: filled(ready / "agentd.duckdb", 3))
    back_up(ready / "agentd.duckdb", ready / "backup.duckdb", busy_s=5)
    anyio.run(lambda: filled(ready / "agentd.duckdb", 2))

def die_at(step):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if event not in STEPS or str(home) not in str(arguments[0]):
            return
        if event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR):
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

async def prune():
    async with Store(db, busy_s=5) as store:
        archives = ArchiveStore(store, SystemClock(), home / "archive", batch_sessions=4)
        await archives.prune(datetime.now(UTC) + timedelta(days=1))

WORK = {
    "backup": lambda: back_up(db, home / "new.duckdb", busy_s=5) and 0,
    "restore": lambda: restore(backup, db, busy_s=5, now=now) and 0,
    "compact": lambda: compact(db, busy_s=5) and 0,
    "repair": lambda: salvage(db, busy_s=5, now=now) and 0,
    "prune": lambda: anyio.run(prune),
}

def verify():
    assert db.exists()
    with snapshot(db, home / "run", 5, read_only=False) as instance:
        found = [*integrity(instance), *invariants(instance, ())]
        assert not found, found
        assert not list(missing_files(instance, home / "archive"))
    with reading(db, folder=home / "run", archive=home / "archive", busy_s=5) as instance:
        ((tasks, events),) = answer(
            instance, "SELECT (SELECT count(*) FROM all_tasks), (SELECT count(*) FROM all_events)"
        ).rows
        assert events == 12 * tasks
        assert tasks in ((5, 3) if what == "restore" else (5,)), tasks
    if (home / "new.duckdb").exists():
        with reading(home / "new.duckdb", folder=home / "run", archive=home, busy_s=5) as instance:
            assert list(answer(instance, "SELECT count(*) FROM tasks").rows) == [(5,)]

assert in_child(prepare) == 0
for step in range(1, 500, 3 if what == "prune" else 1):  # its steps repeat for each table
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(ready, home)
    status = in_child(lambda: (die_at(step), WORK[what]())[1])
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    assert in_child(verify) == 0, f"killed at step {step}"
    if os.WIFEXITED(status):
        print(step)
        break
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", ["backup", "restore", "compact", "repair", "prune"])
def test_killed_at_each_step(what: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, what, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
