"""What was measured, judged by the bounds of the configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentd.daemon.vitals import Lag, Vitals
from agentd.domain.health import Check, Wellness

_DESCRIPTORS_WARN, _DESCRIPTORS_FAIL = 0.8, 0.95  # of what the process may open
# What a fresh process would not have. A full disk and a database that another process keeps are
# not mended by a restart, and would make a loop of it.
_MENDED_BY_RESTART = frozenset({"memory", "event loop", "descriptors"})


@dataclass(frozen=True, slots=True)
class Bounds:
    memory_warn_mb: float
    memory_fail_mb: float
    lag_warn_s: float
    lag_fail_s: float
    disk_least_mb: float
    database_warn_s: float
    database_fail_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Of the database. `took_s` None: it was at rest and was left alone."""

    took_s: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one look has found."""

    vitals: Vitals
    lag: Lag
    database: Answer
    breakers: Mapping[str, str]
    uptime_s: float


def judge(seen: Seen, bounds: Bounds) -> tuple[Check, ...]:
    """A check for each thing, also for those that are well."""
    return tuple(_judged(seen, bounds))


def calls_for_restart(check: Check) -> bool:
    """Whether it fails in a way that a new process would not."""
    return check.state is Wellness.FAIL and check.name in _MENDED_BY_RESTART


def _judged(seen: Seen, bounds: Bounds) -> Iterator[Check]:
    vitals = seen.vitals
    yield _over("memory", vitals.memory_mb, bounds.memory_warn_mb, bounds.memory_fail_mb, unit="MB")
    yield _loop(seen.lag, bounds)
    yield _disk(vitals.disk_free_mb, bounds.disk_least_mb)
    yield _database(seen.database, bounds)
    most = vitals.descriptors_limit
    yield _over(
        "descriptors", vitals.descriptors, _DESCRIPTORS_WARN * most, _DESCRIPTORS_FAIL * most
    )
    yield _breakers(seen.breakers)
    yield Check("uptime", Wellness.OK, f"{seen.uptime_s:.0f} s", seen.uptime_s, "s")


def _over(name: str, value: float | None, warn: float, fail: float, unit: str = "") -> Check:
    if value is None:
        return Check(name, Wellness.OK, "not known on this system")
    state = Wellness.FAIL if value > fail else Wellness.WARN if value > warn else Wellness.OK
    beyond = {Wellness.FAIL: fail, Wellness.WARN: warn}.get(state)
    text = f"{value:.0f} {unit}".strip()
    text += "" if beyond is None else f", more than {beyond:.0f}"
    return Check(name, state, text, round(value, 1), unit)


def _loop(lag: Lag, bounds: Bounds) -> Check:
    longest_ms, usual_ms = lag.longest_s * 1000, lag.usual_s * 1000
    text = f"at most {longest_ms:.0f} ms late, mostly {usual_ms:.0f} ms"
    state = Wellness.WARN if lag.longest_s > bounds.lag_warn_s else Wellness.OK
    if lag.usual_s > bounds.lag_fail_s:
        state = Wellness.FAIL
    return Check("event loop", state, text, round(longest_ms, 1), "ms")


def _disk(free_mb: float | None, least_mb: float) -> Check:
    if free_mb is None:
        return Check("disk", Wellness.FAIL, "the home can not be reached")
    state = Wellness.OK
    if free_mb < 2 * least_mb:
        state = Wellness.FAIL if free_mb < least_mb else Wellness.WARN
    return Check("disk", state, f"{free_mb:.0f} MB free", round(free_mb, 1), "MB")


def _database(answer: Answer, bounds: Bounds) -> Check:
    if answer.error is not None:
        return Check("database", Wellness.FAIL, answer.error)
    if answer.took_s is None:
        return Check("database", Wellness.OK, "at rest")
    took_ms = answer.took_s * 1000
    state = Wellness.WARN if answer.took_s > bounds.database_warn_s else Wellness.OK
    return Check("database", state, f"answered in {took_ms:.0f} ms", round(took_ms, 1), "ms")


def _breakers(states: Mapping[str, str]) -> Check:
    # Not a failure of this daemon's: its tasks wait until the provider is back.
    open_ones = [name for name, state in states.items() if state != "closed"]
    state = Wellness.WARN if open_ones else Wellness.OK
    text = ", ".join(f"{name} {states[name]}" for name in open_ones) or "closed"
    return Check("circuit breakers", state, text)
