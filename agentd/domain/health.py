"""How well a daemon is: what its watchdog saw, and what that means for whoever asks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from agentd.domain.capability import Capability
from agentd.domain.ids import DaemonId

_GRACE_S = 10.0  # a machine under load writes a little late


class Wellness(StrEnum):
    """From good to bad; `worst` relies on the order."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


def worst(states: Sequence[Wellness]) -> Wellness:
    """OK when there are none."""
    order = list(Wellness)
    return max(states, key=order.index, default=Wellness.OK)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `value`: the measured number, in the unit of `unit`."""

    name: str
    state: Wellness
    text: str
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """One look of a watchdog.

    `monotonic_s`: the machine's monotonic clock at the look, the same for all its processes; a
    wall clock may jump. `interval_s`: after so long comes the next look. `phase`: working or
    draining. `breakers`: model provider → state of its circuit breaker.
    """

    daemon: DaemonId
    pid: int
    host: str
    version: str
    phase: str
    looked_at: datetime
    monotonic_s: float
    interval_s: float
    uptime_s: float
    checks: tuple[Check, ...]
    breakers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def state(self) -> Wellness:
        return worst([each.state for each in self.checks])

    def age_s(self, monotonic_s: float) -> float:
        return max(0.0, monotonic_s - self.monotonic_s)

    def is_stale(self, monotonic_s: float) -> bool:
        """Whether the next look is long overdue: the daemon hangs or is stopped."""
        return self.age_s(monotonic_s) > 1.5 * self.interval_s + _GRACE_S

    def troubles(self) -> str:
        """What is not well, in one line; nothing when all is."""
        return "; ".join(f"{c.name}: {c.text}" for c in self.checks if c.state != Wellness.OK)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Of one living daemon. `health` None: its watchdog has not looked yet."""

    daemon: DaemonId
    state: Wellness
    reason: str
    age_s: float | None
    health: Health | None


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Of all daemons of a home that live. The home is as well as the worst of them."""

    state: Wellness
    reason: str
    daemons: tuple[Diagnosis, ...]


class HealthReader(Capability, ABC):
    """Knows how well the daemons of the home are; what does the reading stands above."""

    __slots__ = ()

    @abstractmethod
    def diagnose(self) -> Diagnostics:
        """Of now, as far as the watchdogs have written it down. Asks no daemon, no database."""
