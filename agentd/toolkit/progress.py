"""How far a long call is: told to whoever called, where there is a way to tell."""

from collections.abc import Callable
from dataclasses import dataclass

from agentd.domain.capability import Capability

Tell = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Progress(Capability):
    """`tell(done, total, message)`: `done` must rise; `total` may be unknown."""

    tell: Tell
