"""The watchdog: what it writes down, what it logs, and that it leaves an idle database alone."""

import fcntl
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agentd.daemon import watchdog as watchdogs
from agentd.daemon.checks import Answer, Seen
from agentd.daemon.health_files import HealthFiles, health_path, read_health, write_health
from agentd.daemon.presence import Presence, forget
from agentd.daemon.vitals import Lag, Vitals
from agentd.daemon.watchdog import Watchdog
from agentd.domain.clock import SystemClock
from agentd.domain.health import Health, Wellness
from agentd.domain.ids import DaemonId
from agentd.store.store import Store
from tests.clock import HandClock
from tests.watching import WIDE, capture, make_watchdog

_ONE = DaemonId("daemon-1")
_WELL = Seen(Vitals(100, 1000, 10, 1000), Lag(0, 0), Answer(0.01), {}, 9)
_BIG = replace(_WELL, vitals=Vitals(300_000, 1000, 10, 1000))


@asynccontextmanager
async def _watched(watchdog: Watchdog) -> AsyncIterator[anyio.Event]:
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(watchdog.run, _ONE, stopping)
        yield stopping
        group.cancel_scope.cancel()


async def _health(home: Path, after: Health | None = None) -> Health:
    """The next look that is written down."""
    with anyio.fail_after(5):
        while True:
            found = read_health(home / "run", _ONE)
            if found is not None and found != after:
                return found
            await anyio.sleep(0.005)


async def test_each_look_is_written_down_for_others(tmp_path: Path, store: Store) -> None:
    watchdog = make_watchdog(tmp_path, store, interval_s=0.05)
    async with _watched(watchdog) as stopping:
        first = await _health(tmp_path)
        stopping.set()
        later = await _health(tmp_path, first)
        while later.phase != "draining":
            later = await _health(tmp_path, later)
    assert first.pid == os.getpid()
    assert first.phase == "working"
    assert later.uptime_s >= first.uptime_s
    path = health_path(tmp_path / "run", _ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(json.loads(path.read_text())["checks"]) == 7
    assert not list((tmp_path / "run").glob("*.new"))


async def test_an_idle_database_is_left_alone_and_one_that_was_written_is_asked(
    tmp_path: Path, store: Store
) -> None:
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        await store.ping()

    await store.ping()
    with anyio.fail_after(5):
        while not store.untouched():  # noqa: ASYNC110 - a thread comes to rest in its own time
            await anyio.sleep(0.01)
    watchdog = make_watchdog(tmp_path, store, interval_s=0.01, ask_database=ask)
    async with _watched(watchdog):
        health = await _health(tmp_path)
        for _ in range(5):
            health = await _health(tmp_path, health)
        assert asked == 0
        async with Store(store.path, busy_s=5) as other, other.transaction() as conn:
            await conn.execute("CREATE TABLE visit (id TEXT)")
        with anyio.fail_after(5):
            while not asked:
                health = await _health(tmp_path, health)
    assert health.state is Wellness.OK


async def test_a_database_that_somebody_keeps_is_a_failure_until_it_answers(
    tmp_path: Path, store: Store
) -> None:
    lease = store.path.with_name(store.path.name + ".lease")
    with lease.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        bounds = replace(WIDE, database_fail_s=0.1)
        watchdog = make_watchdog(tmp_path, store, bounds, interval_s=0.05, untouched=lambda: False)
        async with _watched(watchdog):
            health = await _health(tmp_path)
            assert "database: no answer for 0.1 s" in health.troubles()
            assert watchdog.well  # a restart would not mend it
            fcntl.flock(file, fcntl.LOCK_UN)
            with anyio.fail_after(5):
                while health.state is not Wellness.OK:
                    health = await _health(tmp_path, health)


async def test_changes_are_logged_once(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    watchdog = make_watchdog(tmp_path, store, tell=told.append)
    lines = capture(monkeypatch, watchdogs)
    for seen in (_WELL, _BIG, _BIG, _WELL, _WELL):
        await watchdog.note(_ONE, seen, "working")
    assert [(line["check"], line["state"], line["log_level"]) for line in lines] == [
        ("memory", "fail", "error"),
        ("memory", "ok", "info"),
    ]
    assert told[0] == "working"
    assert told[1] == "memory: 300000 MB, more than 200000"


async def test_too_much_memory_calls_for_a_restart(tmp_path: Path, store: Store) -> None:
    watchdog = make_watchdog(tmp_path, store)
    assert watchdog.well
    await watchdog.note(_ONE, _BIG, "working")
    assert not watchdog.well
    await watchdog.note(_ONE, _WELL, "working")
    assert watchdog.well


async def test_a_file_that_can_not_be_written_is_said_once_and_the_watch_goes_on(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchdog = make_watchdog(tmp_path, store)
    (tmp_path / "run").rmdir()
    lines = capture(monkeypatch, watchdogs)
    for _ in range(3):
        await watchdog.note(_ONE, _WELL, "working")
    (tmp_path / "run").mkdir()
    await watchdog.note(_ONE, _WELL, "working")
    assert [line["event"] for line in lines] == ["the health file could not be written"]
    assert read_health(tmp_path / "run", _ONE) is not None


async def test_what_nobody_thought_of_ends_neither_the_watch_nor_the_daemon(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 0

    def states() -> dict[str, str]:
        nonlocal times
        times += 1
        if times == 1:
            raise KeyError("nobody thought of it")
        return {"anthropic": "open"}

    async def ask() -> None:
        raise ValueError("nor of this")

    facts = {"breaker_states": states, "ask_database": ask, "untouched": lambda: False}
    watchdog = make_watchdog(tmp_path, store, interval_s=0.01, **facts)
    lines = capture(monkeypatch, watchdogs)
    async with _watched(watchdog):
        health = await _health(tmp_path)
    assert lines[0]["event"] == "the watchdog could not look"
    assert health.breakers == {"anthropic": "open"}
    assert "database: ValueError('nor of this')" in health.troubles()


def _written(run: Path, clock: HandClock, memory_mb: float = 100) -> Health:
    seen = replace(_WELL, vitals=Vitals(memory_mb, 1000, 10, 1000))

    async def note() -> Health:
        async with Store(run.parent / "none") as store:
            return await make_watchdog(run.parent, store, clock=clock).note(_ONE, seen, "working")

    return anyio.run(note)


def test_nobody_lives(tmp_path: Path) -> None:
    found = HealthFiles(tmp_path, SystemClock()).diagnose()
    assert (found.state, found.reason) == (Wellness.FAIL, "no daemon of this home lives")
    assert HealthFiles(tmp_path / "gone", SystemClock()).diagnose() == found


def test_a_living_daemon_is_as_well_as_its_last_look(tmp_path: Path, clock: HandClock) -> None:
    run = tmp_path / "run"
    run.mkdir()
    files = HealthFiles(run, clock)
    with Presence(run, _ONE):
        assert files.diagnose().state is Wellness.WARN  # it has not looked yet
        _written(run, clock)
        assert files.diagnose().state is Wellness.OK
        _written(run, clock, memory_mb=150_000)
        found = files.diagnose()
        assert found.state is Wellness.WARN
        assert "memory: 150000 MB" in found.reason
    assert files.diagnose().state is Wellness.FAIL  # it died, its file is still there


@pytest.mark.parametrize(("after_s", "state"), [(99, Wellness.OK), (101, Wellness.FAIL)])
def test_an_overdue_look_means_that_the_daemon_hangs(
    after_s: float, state: Wellness, tmp_path: Path, clock: HandClock
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with Presence(run, _ONE):
        _written(run, clock)
        clock.advance(after_s)
        found = HealthFiles(run, clock).diagnose()
    assert found.state is state
    assert ("hangs or is stopped" in found.reason) == (state is Wellness.FAIL)


def test_the_home_is_as_well_as_its_worst_daemon(tmp_path: Path, clock: HandClock) -> None:
    run = tmp_path / "run"
    run.mkdir()
    two = DaemonId("daemon-2")
    with Presence(run, _ONE), Presence(run, two):
        write_health(run, replace(_written(run, clock), daemon=two))
        _written(run, clock, memory_mb=300_000)
        found = HealthFiles(run, clock).diagnose()
    assert found.state is Wellness.FAIL
    assert [each.state for each in found.daemons] == [Wellness.FAIL, Wellness.OK]


@pytest.mark.parametrize("text", ["", "{", '{"daemon": "daemon-1"}', '{"checks": 1}'])
def test_a_file_that_nobody_understands_counts_as_none(text: str, tmp_path: Path) -> None:
    health_path(tmp_path, _ONE).write_text(text)
    assert read_health(tmp_path, _ONE) is None


def test_nothing_of_a_forgotten_daemon_stays(tmp_path: Path, clock: HandClock) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with Presence(run, _ONE):
        _written(run, clock)
    forget(run, _ONE)
    assert not list(run.iterdir())
