"""What is measured, and what the bounds make of it."""

import resource
from pathlib import Path

import anyio
import pytest

from agentd.daemon.checks import Answer, Bounds, Seen, calls_for_restart, judge
from agentd.daemon.vitals import Lag, LagMeter, Vitals, measure
from agentd.domain.clock import SystemClock
from agentd.domain.health import Check, Wellness, worst

_BOUNDS = Bounds(
    memory_warn_mb=256,
    memory_fail_mb=512,
    lag_warn_s=0.5,
    lag_fail_s=5,
    disk_least_mb=200,
    database_warn_s=1,
    database_fail_s=10,
)
_WELL = Seen(Vitals(100, 1000, 10, 1000), Lag(0.1, 0.01), Answer(0.01), {"anthropic": "closed"}, 9)


def _seen(**changed: object) -> Seen:
    facts = {name: getattr(_WELL, name) for name in Seen.__dataclass_fields__}
    return Seen(**{**facts, **changed})


def _vitals(**changed: object) -> Seen:
    facts = {name: getattr(_WELL.vitals, name) for name in Vitals.__dataclass_fields__}
    return _seen(vitals=Vitals(**{**facts, **changed}))


def _check(seen: Seen, name: str) -> Check:
    (found,) = [each for each in judge(seen, _BOUNDS) if each.name == name]
    return found


def test_everything_that_is_looked_at_is_reported_also_when_it_is_well() -> None:
    checks = judge(_WELL, _BOUNDS)
    assert [each.name for each in checks] == [
        "memory",
        "event loop",
        "disk",
        "database",
        "descriptors",
        "circuit breakers",
        "uptime",
    ]
    assert {each.state for each in checks} == {Wellness.OK}


@pytest.mark.parametrize(
    ("seen", "name", "state", "says"),
    [
        (_vitals(memory_mb=256), "memory", "ok", "256 MB"),
        (_vitals(memory_mb=257), "memory", "warn", "more than 256"),
        (_vitals(memory_mb=513), "memory", "fail", "more than 512"),
        (_vitals(memory_mb=None), "memory", "ok", "not known"),
        (_vitals(disk_free_mb=399), "disk", "warn", "399 MB free"),
        (_vitals(disk_free_mb=199), "disk", "fail", "199 MB free"),
        (_vitals(disk_free_mb=None), "disk", "fail", "can not be reached"),
        (_vitals(descriptors=801), "descriptors", "warn", "more than 800"),
        (_vitals(descriptors=951), "descriptors", "fail", "more than 950"),
        (_seen(lag=Lag(0.6, 0.01)), "event loop", "warn", "600 ms late"),
        (_seen(lag=Lag(600, 0.01)), "event loop", "warn", "600000 ms late"),  # SIGSTOP, once
        (_seen(lag=Lag(9, 6)), "event loop", "fail", "mostly 6000 ms"),
        (_seen(database=Answer()), "database", "ok", "at rest"),
        (_seen(database=Answer(2)), "database", "warn", "2000 ms"),
        (_seen(database=Answer(error="no room")), "database", "fail", "no room"),
        (_seen(breakers={"a": "open", "b": "closed"}), "circuit breakers", "warn", "a open"),
    ],
)
def test_what_is_out_of_bounds_says_so(seen: Seen, name: str, state: str, says: str) -> None:
    check = _check(seen, name)
    assert check.state == state
    assert says in check.text
    others = [each.state for each in judge(seen, _BOUNDS) if each.name != name]
    assert worst(others) is Wellness.OK


def test_a_restart_is_called_for_where_it_mends_something() -> None:
    assert calls_for_restart(_check(_vitals(memory_mb=600), "memory"))
    assert not calls_for_restart(_check(_vitals(memory_mb=300), "memory"))
    assert not calls_for_restart(_check(_vitals(disk_free_mb=1), "disk"))
    assert not calls_for_restart(_check(_seen(database=Answer(error="busy")), "database"))


def test_the_worst_of_several() -> None:
    assert worst([Wellness.OK, Wellness.FAIL, Wellness.WARN]) is Wellness.FAIL
    assert worst([]) is Wellness.OK


def test_this_process_is_measured(tmp_path: Path) -> None:
    before = measure(tmp_path)
    block = bytearray(50_000_000)
    block[::4096] = b"x" * len(block[::4096])  # touched, else it takes no memory
    with (tmp_path / "open").open("wb"):
        after = measure(tmp_path)
    assert before.memory_mb is not None
    assert after.memory_mb is not None
    assert 40 < after.memory_mb - before.memory_mb < 100
    assert after.descriptors == (before.descriptors or 0) + 1
    assert after.descriptors_limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert after.disk_free_mb
    assert measure(tmp_path / "gone").disk_free_mb is None


async def test_a_loop_that_is_held_up_is_seen_to_be_late() -> None:
    clock = SystemClock()
    meter = LagMeter(clock, every_s=0.01)
    async with anyio.create_task_group() as group:
        group.start_soon(meter.run)
        await anyio.sleep(0.02)
        before = clock.monotonic()
        while clock.monotonic() - before < 0.3:
            pass  # what a blocking call does to the loop
        await anyio.sleep(0.1)
        lag = meter.take()
        assert lag.longest_s > 0.25
        assert lag.usual_s < lag.longest_s
        assert meter.take().longest_s == 0  # each is told once
        group.cancel_scope.cancel()
