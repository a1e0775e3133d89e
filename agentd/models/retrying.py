"""How long to wait before the next try for a reply."""

import random
from dataclasses import dataclass

from agentd.domain.errors import ModelError

_DICE = random.Random()  # noqa: S311 - it spreads load and protects nothing


@dataclass(frozen=True, slots=True)
class Backoff:
    """A doubling wait of which the upper half is random. `attempts`: tries in all.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("equal jitter").
    """

    attempts: int = 6
    base_s: float = 1.0
    cap_s: float = 32.0
    retry_after_cap_s: float = 300.0

    def __call__(self, error: ModelError, attempt: int) -> float | None:
        """Seconds to wait after the failed try number `attempt` (from 1); None: give up.

        A wait that the provider asks for is honoured in full, and a little spread on top of it.
        """
        if not error.retryable or attempt >= self.attempts:
            return None
        if error.retry_after_s is not None:
            if error.retry_after_s > self.retry_after_cap_s:
                return None
            return error.retry_after_s + _DICE.uniform(0, 0.1 * error.retry_after_s)
        ceiling = min(self.cap_s, self.base_s * 2 ** (attempt - 1))
        return _DICE.uniform(ceiling / 2, ceiling)
