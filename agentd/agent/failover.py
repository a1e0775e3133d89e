"""Which model is asked: the first one, or while its provider has an outage the one behind it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentd.domain.errors import ModelError
from agentd.models.breaker import Breaker
from agentd.models.model import Model


class Patience(Protocol):
    """How long to wait after a failed attempt; None: not at all, give up."""

    def __call__(self, error: ModelError, attempt: int) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model, and the breaker that its provider's calls share."""

    model: Model
    breaker: Breaker


@dataclass(slots=True)
class Failover:
    """The models of one run, best first, and whose turn it was last."""

    candidates: Sequence[Candidate]
    patience: Patience
    _asked: Candidate | None = None

    @property
    def first(self) -> Model:
        return self.candidates[0].model

    def change(self, chosen: Candidate) -> tuple[str, str] | None:
        """The names of the model before and of the chosen one, if that is news."""
        before = self._asked or self.candidates[0]
        self._asked = chosen
        return None if before is chosen else (before.model.name, chosen.model.name)

    def begin(self) -> "Tries":
        """For one reply."""
        return Tries(self.candidates, self.patience)


@dataclass(slots=True)
class Tries:
    """The attempts for one reply. Each model has all of its own. `is_resting`: that was said."""

    candidates: Sequence[Candidate]
    patience: Patience
    made: int = 0
    is_resting: bool = False
    _failed: Counter[str] = field(default_factory=Counter[str])
    _given_up: set[str] = field(default_factory=set[str])

    def choose(self) -> Candidate | float:
        """Whom to ask now, or the seconds until one of them may be asked."""
        left = [each for each in self.candidates if each.model.name not in self._given_up]
        waits = [each.breaker.wait_s() for each in left]
        return left[waits.index(0.0)] if 0.0 in waits else min(waits)

    def failed(self, candidate: Candidate, error: ModelError) -> float | None:
        """Seconds to wait before the next choice; None: no model is left that could be asked."""
        name = candidate.model.name
        self._failed[name] += 1
        delay_s = self.patience(error, self._failed[name])
        if delay_s is not None:
            # Resting, it waits by itself; and somebody else may be asked at once.
            return 0.0 if candidate.breaker.wait_s() > 0 else delay_s
        self._given_up.add(name)
        if not error.retryable or len(self._given_up) == len(self.candidates):
            return None
        # The next replies are asked of the other model, too, until this one's provider has rested.
        candidate.breaker.trip(error)
        return 0.0
