"""How long to wait before the next try, and how often to try."""

import random
from dataclasses import dataclass, field

_DICE = random.Random()  # noqa: S311 - it spreads load and protects nothing


def backoff_s(tries: int, *, base_s: float, cap_s: float) -> float:
    """Seconds to wait after so many failed tries: doubling, the upper half of it random.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("equal jitter").
    """
    ceiling = min(cap_s, base_s * 2.0 ** min(tries - 1, 64))
    return _DICE.uniform(ceiling / 2, ceiling)


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a task is tried. `most`: for tasks that say nothing themselves."""

    most: int = 3
    base_s: float = 10.0
    cap_s: float = 600.0

    def after_error(self, attempt: int, own_most: int | None) -> float | None:
        """Seconds until the next attempt after number `attempt` (from 1); None: it was the last."""
        if attempt >= self._most(own_most):
            return None
        return backoff_s(attempt, base_s=self.base_s, cap_s=self.cap_s)

    def after_loss(self, attempt: int, own_most: int | None) -> float | None:
        """The same when the daemon died: once that is no fault of the task, so at once."""
        if attempt >= self._most(own_most):
            return None
        if attempt == 1:
            return 0.0
        return backoff_s(attempt - 1, base_s=self.base_s, cap_s=self.cap_s)

    def _most(self, own: int | None) -> int:
        return self.most if own is None else own


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a run owns its task. `lease_s`: so long without a sign of life of its daemon."""

    lease_s: float = 60.0
    attempts: Attempts = field(default_factory=Attempts)
