"""`run/<daemon id>.health.json`: a watchdog writes its last look there, any process may read it."""

import contextlib
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agentd.daemon.presence import alive_ones
from agentd.domain.clock import Clock
from agentd.domain.health import Diagnosis, Diagnostics, Health, HealthReader, Wellness, worst
from agentd.domain.ids import DaemonId

_SUFFIX = ".health.json"
_HEALTH = TypeAdapter(Health)


def health_path(run_directory: Path, daemon_id: DaemonId) -> Path:
    return run_directory / f"{daemon_id}{_SUFFIX}"


def write_health(run_directory: Path, health: Health) -> None:
    """Whoever reads finds the old look or this one, never half of it. Raises OSError."""
    path = health_path(run_directory, health.daemon)
    fresh = path.with_name(path.name + ".new")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(_HEALTH.dump_json(health))
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def read_health(run_directory: Path, daemon_id: DaemonId) -> Health | None:
    """None when there is none, or none that this version understands."""
    try:
        return _HEALTH.validate_json(health_path(run_directory, daemon_id).read_bytes())
    except (OSError, ValidationError):
        return None


class HealthFiles(HealthReader):
    """The health of all living daemons of a home, from their files."""

    __slots__ = ("_clock", "_run_directory")

    def __init__(self, run_directory: Path, clock: Clock) -> None:
        self._run_directory = run_directory
        self._clock = clock

    def diagnose(self) -> Diagnostics:
        daemons = tuple(self._diagnosis(each) for each in sorted(alive_ones(self._run_directory)))
        if not daemons:
            return Diagnostics(Wellness.FAIL, "no daemon of this home lives", ())
        state = worst([each.state for each in daemons])
        reasons = [each.reason for each in daemons if each.state is state and each.reason]
        return Diagnostics(state, "; ".join(reasons), daemons)

    def _diagnosis(self, daemon_id: DaemonId) -> Diagnosis:
        health = read_health(self._run_directory, daemon_id)
        if health is None:
            reason = "its watchdog has not looked yet"
            return Diagnosis(daemon_id, Wellness.WARN, reason, None, None)
        now_s = self._clock.monotonic()
        age_s = round(health.age_s(now_s), 1)
        if health.is_stale(now_s):
            reason = f"it hangs or is stopped: its watchdog has not looked for {age_s:.0f} s"
            return Diagnosis(daemon_id, Wellness.FAIL, reason, age_s, health)
        return Diagnosis(daemon_id, health.state, health.troubles(), age_s, health)
