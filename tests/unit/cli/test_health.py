"""`agentd health` and `agentd diagnostics`: what they say and how they exit."""

import fcntl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.daemon.health_files import write_health
from agentd.daemon.presence import Presence
from agentd.domain.clock import SystemClock
from agentd.domain.health import Check, Health, Wellness
from agentd.domain.ids import DaemonId
from tests.unit.cli.conftest import Agentd

_ONE, _TWO = DaemonId("daemon-1"), DaemonId("daemon-2")


def _look(home: Path, daemon: DaemonId, state: Wellness, age_s: float = 0) -> None:
    health = Health(
        daemon=daemon,
        pid=1,
        host="h",
        version="0",
        phase="working",
        looked_at=datetime(2026, 1, 1, tzinfo=UTC),
        monotonic_s=SystemClock().monotonic() - age_s,
        interval_s=60,
        uptime_s=7,
        checks=(
            Check("disk", state, "100 MB free", 100, "MB"),
            Check("uptime", Wellness.OK, "7 s"),
        ),
        breakers={"anthropic": "closed"},
    )
    write_health(home / "run", health)


def test_without_a_daemon(agentd: Agentd, home: Path) -> None:
    done = agentd("health")
    assert (done.code, done.out) == (1, "not well: no daemon of this home lives\n")
    assert agentd("health", "--json").json == {
        "ok": False,
        "state": "fail",
        "reason": "no daemon of this home lives",
        "daemons": 0,
    }
    table = agentd("diagnostics")
    assert (table.code, table.out) == (1, "")
    assert "agentd run" in table.err


def test_without_a_home(agentd: Agentd, tmp_path: Path) -> None:
    for command in ("health", "diagnostics"):
        done = agentd(command, "--home", str(tmp_path / "none"))
        assert done.code == 2
        assert "there is no agentd home" in done.err


@pytest.mark.parametrize(
    ("state", "age_s", "code", "says"),
    [
        (Wellness.OK, 0, 0, "ok\n"),
        (Wellness.WARN, 0, 0, "warn: disk: 100 MB free\n"),
        (Wellness.FAIL, 0, 1, "not well: disk: 100 MB free\n"),
        (Wellness.OK, 200, 1, "not well: it hangs or is stopped: its watchdog has not looked for"),
    ],
)
def test_a_daemon_is_as_well_as_its_last_look(
    state: Wellness, age_s: float, code: int, says: str, agentd: Agentd, home: Path
) -> None:
    with Presence(home / "run", _ONE):
        _look(home, _ONE, state, age_s)
        done = agentd("health")
        assert done.code == code
        assert done.out.startswith(says)
        assert agentd("health", "--json").json["ok"] == (code == 0)
        table = agentd("diagnostics")
        assert table.code == code
        assert "100 MB free" in table.out


def test_before_the_first_look_it_is_not_well_yet(agentd: Agentd, home: Path) -> None:
    with Presence(home / "run", _ONE):
        done = agentd("health")
        assert (done.code, done.out) == (1, "not well: its watchdog has not looked yet\n")
        assert "has not looked yet" in agentd("diagnostics").out


def test_one_daemon_that_is_well_is_enough_for_the_health_of_the_home(
    agentd: Agentd, home: Path
) -> None:
    with Presence(home / "run", _ONE), Presence(home / "run", _TWO):
        _look(home, _ONE, Wellness.FAIL)
        _look(home, _TWO, Wellness.OK)
        assert agentd("health").code == 0
        done = agentd("diagnostics", "--json")
    assert done.code == 1
    assert [each["state"] for each in done.json["daemons"]] == ["fail", "ok"]
    (first, _) = done.json["daemons"]
    assert first["health"]["breakers"] == {"anthropic": "closed"}
    assert [each["name"] for each in first["health"]["checks"]] == ["disk", "uptime"]


def test_neither_needs_the_database(agentd: Agentd, home: Path) -> None:
    with Presence(home / "run", _ONE), (home / "agentd.duckdb.lease").open("wb") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)  # another process has the file, and keeps it
        _look(home, _ONE, Wellness.OK)
        assert agentd("health").code == 0
        assert agentd("diagnostics").code == 0
