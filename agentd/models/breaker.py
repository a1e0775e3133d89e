"""Leaves a provider alone that is down: after some failures in a row no call is made for a while.

closed ──failures──► open ──cooldown──► probing (one call) ──answer──► closed
                       ▲                      └──failure──► open
Only failures of the provider count: overload, outage, silence, a broken stream. One that refuses a
request has answered it. Calls that were under way together fail together, and count as one: fifty
workers would else take every hiccup for an outage.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import structlog

from agentd.domain.clock import Clock
from agentd.domain.errors import ModelError

_log = structlog.get_logger()
_LOOK_AGAIN_S = 0.2  # while another call probes


class BreakerOpen(Exception):
    """A signal, no failure: the call was not made."""


class BreakerState(StrEnum):
    CLOSED = "closed"  # calls are made
    OPEN = "open"  # none is made before the cooldown is over
    PROBING = "probing"  # the one call is under way that decides


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """`failures`: in a row. `retry_in_s`: until a call may be made, 0 when it may be made now."""

    provider: str
    state: BreakerState
    failures: int
    retry_in_s: float
    last_error: str | None


@dataclass(slots=True)
class Breaker:
    """Of one provider, for all workers of a daemon.

    rest_cap_s: what a provider that asks for a longer rest than the cooldown gets at the most.
    """

    provider: str
    clock: Clock
    threshold: int = 5
    cooldown_s: float = 60.0
    rest_cap_s: float = 300.0
    _failures: int = 0
    _counted: int = 0  # failures ever
    _open_until: float | None = None
    _probing: bool = False
    _last_error: str | None = None

    def wait_s(self) -> float:
        """Seconds until it is worth another look; 0: a call may be made now."""
        if self._open_until is None:
            return 0.0
        if self._probing:
            return _LOOK_AGAIN_S
        return max(0.0, self._open_until - self.clock.monotonic())

    @contextmanager
    def call(self) -> Generator[None]:
        """Around one call: takes note of how it ends. Raises BreakerOpen when it must not be made.

        No `await` may stand between a `wait_s` of 0 and this if it is not to be raised.
        """
        if self.wait_s() > 0:
            raise BreakerOpen
        probe = self._probing = self._open_until is not None
        counted = self._counted
        try:
            yield
        except ModelError as error:
            if error.retryable:
                self._failed(error, probe=probe, news=counted == self._counted)
            else:
                self._answered()
            raise
        except BaseException:
            # Cut off: nothing was learned. The next call may probe at once.
            self._probing = self._probing and not probe
            raise
        else:
            self._answered()

    def trip(self, error: ModelError) -> None:
        """Leave the provider alone although it has not failed often enough for that."""
        if self._open_until is None:
            self._open(error)

    def report(self) -> BreakerReport:
        state = BreakerState.CLOSED
        if self._open_until is not None:
            state = BreakerState.PROBING if self._probing else BreakerState.OPEN
        return BreakerReport(
            self.provider, state, self._failures, round(self.wait_s(), 3), self._last_error
        )

    def _answered(self) -> None:
        if self._open_until is not None:
            _log.info("provider answers again", provider=self.provider)
        self._failures, self._open_until, self._probing = 0, None, False

    def _failed(self, error: ModelError, *, probe: bool, news: bool) -> None:
        """`news`: no failure was counted since the call began."""
        self._last_error = error.message
        if news:
            self._failures += 1
            self._counted += 1
        if probe:
            self._probing = False
            self._open(error)
        elif self._open_until is None and self._failures >= self.threshold:
            self._open(error)

    def _open(self, error: ModelError) -> None:
        rest_s = max(self.cooldown_s, min(error.retry_after_s or 0.0, self.rest_cap_s))
        self._open_until = self.clock.monotonic() + rest_s
        self._last_error = error.message
        _log.warning(
            "provider is left alone",
            provider=self.provider,
            failures=self._failures,
            rest_s=rest_s,
            error=error.message,
        )


@dataclass(slots=True)
class Breakers:
    """One for each provider, made when it is first asked for."""

    clock: Clock
    threshold: int = 5
    cooldown_s: float = 60.0
    rest_cap_s: float = 300.0
    _made: dict[str, Breaker] = field(default_factory=dict[str, Breaker])

    def of(self, model: str) -> Breaker:
        """The one of the provider of `model` ("provider:name"). A script is its own provider."""
        provider = model.partition(":")[0]
        key = model if provider == "scripted" else provider
        if key not in self._made:
            self._made[key] = Breaker(
                key, self.clock, self.threshold, self.cooldown_s, self.rest_cap_s
            )
        return self._made[key]

    def states(self) -> list[BreakerReport]:
        """How it stands with every provider that was asked so far, by name."""
        return [self._made[name].report() for name in sorted(self._made)]
