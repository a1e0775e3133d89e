"""A program of the model: it runs until it needs tools, and goes on when they have answered.

An interpreter knows nothing of tools but names; what a call means and whether it may be made is
decided by whoever answers.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Limits:
    """`run_s`: that the program itself runs, its tool calls not counted.

    `value_bytes`: of the arguments of a call, and of the program's result, as JSON.
    """

    run_s: float = 60.0
    code_bytes: int = 51_200
    tool_calls: int = 25
    memory_bytes: int = 64 << 20
    output_bytes: int = 1 << 20
    value_bytes: int = 1 << 20
    snapshot_bytes: int = 4 << 20
    recursion: int = 500


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as programs see it: each parameter's name in code, and its own."""

    tool: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a program starts with. `printed`, `spent_s`: of it before it was interrupted.

    `seed` and `now_ms`: for languages without snapshots, whose programs run again and must come by
    the same way.
    """

    functions: Mapping[str, Function]
    limits: Limits
    printed: str = ""
    spent_s: float = 0.0
    seed: str = ""
    now_ms: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that a program makes. `number`: from 1, in the order in which it was made."""

    number: int
    tool: str
    arguments: Mapping[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call. `error`: the message that is raised in the program."""

    value: Any
    error: str | None
    error_type: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The program can not go on without these, in the order of their numbers."""

    asked: Sequence[Asked]


@dataclass(frozen=True, slots=True)
class Ended:
    """The program has come to its end. `value`: JSON; None when it gave none."""

    value: Any


@dataclass(frozen=True, slots=True)
class Broken:
    """The program was ended by an error. `message`: with line numbers, for its author."""

    error_type: str
    message: str


Step = Paused | Ended | Broken


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A pause as bytes. `open`: the calls without an answer, by the interpreter's own numbers."""

    state: bytes
    open: Mapping[str, Asked]
    asked: int


class Program(Protocol):
    """One program being run. `printed` and `spent_s`: so far, also before an interruption."""

    @property
    def printed(self) -> str: ...

    @property
    def spent_s(self) -> float: ...

    async def start(self, code: str) -> Step: ...

    async def restore(self, snapshot: Snapshot) -> Step:
        """Go back to a pause. Raises NotRestored."""
        ...

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        """Go on. `answers`: by number, one for each call of the last pause."""
        ...

    def snapshot(self) -> Snapshot | None:
        """The pause, for `restore`; None where the language has none or it is too large."""
        ...


class Interpreter(Protocol):
    """Runs programs of one language. `keeps_state`: its programs can be restored."""

    @property
    def keeps_state(self) -> bool: ...

    def open(self, setting: Setting) -> AbstractAsyncContextManager[Program]: ...


class Unavailable(Exception):
    """The interpreter can not be started on this machine."""


class NotRestored(Exception):
    """The snapshot is none that this interpreter can go on with."""
