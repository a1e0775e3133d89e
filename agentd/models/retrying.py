"""How long to wait before the next try for a reply."""

from dataclasses import dataclass

from agentd.domain.backoff import backoff_s
from agentd.domain.errors import ModelError

_SPREAD = 0.1  # of a wait that the provider asked for: not all come back at the same moment


@dataclass(frozen=True, slots=True)
class Backoff:
    """A doubling wait of which the upper half is random. `attempts`: tries in all."""

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
            extra_s = _SPREAD * error.retry_after_s
            return error.retry_after_s + backoff_s(1, base_s=extra_s, cap_s=extra_s)
        return backoff_s(attempt, base_s=self.base_s, cap_s=self.cap_s)
