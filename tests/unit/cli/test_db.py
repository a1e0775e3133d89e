"""`agentd db …`, `agentd sql`, `agentd prune`."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from agentd.daemon.presence import Presence
from agentd.domain.ids import DaemonId
from agentd.store.store import Store
from tests.store_filling import flip, killed_while_writing, worked
from tests.unit.cli.conftest import Agentd


@pytest.fixture
def session(home: Path) -> str:
    """A session that was over in 2026, three turns of 1.50 $."""

    async def fill() -> str:
        async with Store(home / "agentd.duckdb") as store:
            return await worked(store, datetime(2026, 1, 1, tzinfo=UTC))

    return anyio.run(fill)


def test_a_check_exits_with_what_it_found(agentd: Agentd, session: str) -> None:
    assert (agentd("db", "check").code, agentd("db", "check", "--json").json["ok"]) == (0, True)
    assert agentd("sql", "--write", "DELETE FROM events WHERE seq = 2").code == 0
    found = agentd("db", "check")
    assert found.code == 1
    assert "holes" in found.out
    assert session in found.out
    findings = agentd("db", "check", "--json").json["findings"]
    assert {each["check"] for each in findings} == {"gap_in_journal", "result_without_call"}


def test_a_damaged_log_is_a_finding_and_can_be_repaired(
    agentd: Agentd, home: Path, session: str
) -> None:
    killed_while_writing(home / "agentd.duckdb", 10)
    log = home / "agentd.duckdb.wal"
    flip(log, log.read_bytes().index(b"task 5"))
    found = agentd("db", "check")
    assert (found.code, "readable" in found.out) == (1, True)
    repaired = agentd("db", "repair")
    assert repaired.code == 1
    assert "bytes of the log lost" in repaired.out
    assert agentd("db", "check").code == 0
    assert agentd("sql", "SELECT count(*) FROM tasks", "--csv").out.split()[-1] == "6"
    assert agentd("task", "view", session).code == 0
    assert agentd("db", "repair", "--json").json["whole"] is True


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("left_bytes", [0, 5000, 60_000])
def test_a_file_without_its_end_is_a_finding(left_bytes: int, agentd: Agentd, home: Path) -> None:
    path = home / "agentd.duckdb"
    os.truncate(path, left_bytes)
    found = agentd("db", "check", "--json")
    assert (found.code, [each["check"] for each in found.json["findings"]]) == (1, ["readable"])
    repaired = agentd("db", "repair")
    assert (repaired.code, "db restore" in repaired.err) == (1, True)
    assert f"{path} is" in repaired.err
    assert path.stat().st_size == left_bytes


def test_there_and_back(agentd: Agentd, home: Path, session: str) -> None:
    backup = agentd("db", "backup").out.strip()
    assert Path(backup).parent == home / "backups"
    assert agentd("task", "delete", session).code == 0
    assert agentd("task", "view", session).code == 1
    restored = agentd("db", "restore", backup)
    assert restored.code == 0, restored.err
    assert "before-restore-" in restored.out
    assert agentd("task", "view", session).code == 0
    assert agentd("db", "backup", backup).code == 1
    assert agentd("db", "restore", str(home / "nothing")).code == 1
    assert agentd("db", "restore", str(home / "agentd.toml")).code == 1
    before, after = agentd("db", "compact", "--json").json.values()
    assert 0 < after <= before


@pytest.mark.usefixtures("session")
def test_no_restore_while_a_daemon_lives(agentd: Agentd, home: Path) -> None:
    backup = agentd("db", "backup").out.strip()
    with Presence(home / "run", DaemonId("d")):
        refused = agentd("db", "restore", backup)
    assert (refused.code, "1 daemons work" in refused.err) == (1, True)
    assert not list(home.glob("*before-restore*"))
    assert agentd("db", "restore", backup).code == 0


def test_only_so_many_backups_are_kept(agentd: Agentd, home: Path) -> None:
    old = home / "backups" / "agentd-20200101T000000Z.duckdb"
    old.parent.mkdir()
    old.touch()
    done = agentd("db", "backup", "--keep", "1", "--json").json
    assert done["removed"] == [str(old)]
    assert [str(path) for path in old.parent.iterdir()] == [done["backup"]["path"]]


def test_answers_as_a_table_as_json_and_as_csv(
    agentd: Agentd, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT seq, kind, body, NULL AS nothing, seq > 1 AS later FROM events WHERE seq = 1"
    assert agentd("sql", sql).out.splitlines()[1].split()[:2] == ["1", "user"]
    body = {"text": "Go.", "source": "task"}
    expected = {"seq": 1, "kind": "user", "body": body, "nothing": None, "later": False}
    assert agentd("sql", sql, "--json").json == [expected]
    (row,) = csv.DictReader(io.StringIO(agentd("sql", sql, "--csv").out))
    assert (json.loads(row["body"]), row["nothing"], row["later"]) == (body, "", "false")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"SELECT id FROM tasks WHERE id = '{session}'"))
    assert agentd("sql", "-", "--csv").out == f"id\n{session}\n"
    assert agentd("sql", "SELECT 1 WHERE FALSE").err.strip() == "No rows."
    assert agentd("sql", "SELECT 'NaN'::DOUBLE AS n", "--json").json == [{"n": None}]


@pytest.mark.usefixtures("session")
def test_wrong_questions_are_answered_without_a_traceback(agentd: Agentd) -> None:
    for sql in ("SELEC", "SELECT * FROM nowhere", "DELETE FROM tasks", "SELECT 1; SELECT 2"):
        assert agentd("sql", sql).code == 1
    assert "--write" in agentd("sql", "DELETE FROM tasks").err
    assert agentd("sql", " ").code == 2
    assert agentd("sql", "SELECT 1", "--csv", "--json").code == 2


_HEEDING = "SELECT count(*) FROM range(100000000) a(n), range(100000) b(m) WHERE (n * m) % 7 = 3"
_DEAF = (
    "SELECT * FROM sessions WHERE id IN "
    "(SELECT CAST(a.n * b.m AS TEXT) FROM range(10000000) a(n), range(100000) b(m))"
)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("sql", [_HEEDING, _DEAF], ids=["heeded", "not heeded"])
def test_ctrl_c_ends_a_long_question(sql: str, home: Path) -> None:
    environment = {**os.environ, "AGENTD_HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, "-m", "agentd", "sql", sql],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as asking:
        # The copy's folder is there while the question is.
        while not list((home / "run").glob(".agentd-copy-*")):
            assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=15)
    assert asking.returncode == 130, err
    assert (out, "Traceback" in err) == ("", False)
    assert sql == _DEAF or not list((home / "run").glob(".agentd-copy-*"))


def test_old_sessions_move_and_are_still_counted(agentd: Agentd, home: Path, session: str) -> None:
    agentd("enqueue", "new")
    would = agentd("prune", "--older-than", "2026-02-01", "--dry-run")
    assert would.out == "would move 1 sessions, 1 tasks, 12 events\n"
    assert agentd("task", "view", session).code == 0
    done = agentd("prune", "--older-than", "2026-02-01", "--json").json
    assert done["pruned"]["sessions"] == 1
    assert agentd("task", "view", session).code == 1
    sql = "SELECT id, cost_usd FROM task_costs WHERE cost_usd IS NOT NULL"
    assert agentd("sql", sql, "--json").json == [{"id": session, "cost_usd": 4.5}]
    assert agentd("db", "check").code == 0
    assert "archive/" in agentd("db", "backup").err
    assert agentd("prune", "--older-than", "soon").code == 2
    next((home / "archive" / "events").iterdir()).unlink()
    assert agentd("db", "check").code == 1
