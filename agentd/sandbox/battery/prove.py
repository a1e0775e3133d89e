"""Runs the attacks through `Commands`, exactly as `exec` runs a command, and judges them.

An attack has held only when it says so itself and nothing was noticed outside; one that neither
escaped nor was refused is `unclear`, and proves nothing.
"""

import json
import os
import signal
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

import anyio

from agentd.sandbox.battery.arena import Arena, made_arena
from agentd.sandbox.battery.attacks import ATTACKS, Attack
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished

_END = """
import json as _json, sys as _sys
try:
    _found = globals()[_sys.argv[1]](_json.loads(_sys.argv[2]))
except MemoryError:
    _found, _why = None, "no memory"
except KeyError as _error:
    print("SKIPPED the target could not be made:", _error)
    raise SystemExit(0)
except OSError as _error:
    _found, _why = None, _error.strerror or str(_error)
else:
    _why = "refused, or not there"
print("ESCAPED " + _found if _found else "HELD " + _why)
"""
_GONE_S = 2.0  # how long the kernel may take to clear up after a command
_MOST_CHARS = 10_000


class Verdict(StrEnum):
    HELD = "held"
    ESCAPED = "ESCAPED"
    UNCLEAR = "unclear"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`by`: what was to stop it. `evidence`: how it ended, in words."""

    kind: str
    name: str
    tried: str
    verdict: Verdict
    by: str
    evidence: str

    @property
    def holds(self) -> bool:
        return self.verdict in (Verdict.HELD, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the attacks on resources go: beyond what a command may take."""

    processes: int = 600
    memory_mb: int = 5120
    file_mb: int = 5120
    tmp_mb: int = 640
    open_files: int = 5000
    spin_s: int = 15


@dataclass(frozen=True, slots=True)
class Proof:
    """`commands`: what is to be proved. `home`: what it has to guard."""

    commands: Commands
    home: Path
    workspace: Path
    bounds: Bounds = Bounds()

    async def run(
        self,
        tell: Callable[[str, int, int], None],
        attacks: Sequence[Attack] = ATTACKS,
    ) -> list[Outcome]:
        """Every attack, one after another. Raises ToolError where nothing can be confined."""
        bounds = {name: getattr(self.bounds, name) for name in self.bounds.__slots__}
        found: list[Outcome] = []
        with made_arena(self.home, self.workspace, bounds) as arena:
            for number, attack in enumerate(attacks):
                tell(attack.tried, number, len(attacks))
                found.append(await self._attack(attack, arena))
        return found

    async def _attack(self, attack: Attack, arena: Arena) -> Outcome:
        program, programs = interpreter()
        targets = json.dumps(arena.targets)
        argv = [program, "-ISc", _source(attack.kind), attack.name, targets]
        done = await self.commands.run(
            Command(
                argv,
                timeout_s=attack.timeout_s,
                workdir=arena.here,
                programs=programs,
                most_chars=_MOST_CHARS,
            )
        )
        noticed = [*arena.noticed(), *await _left(arena)]
        if arena.secret in done.output:
            noticed.append("the secret came out")
        verdict, evidence = _judge(attack, done, noticed)
        return Outcome(attack.kind, attack.name, attack.tried, verdict, attack.by, evidence)


def interpreter() -> tuple[str, list[Path]]:
    """Our own python without its packages, and what has to be bound so that it runs inside."""
    name = f"python{sysconfig.get_python_version()}"
    base = Path(sys.base_prefix).resolve()
    program = base / "bin" / name
    if not program.exists():
        program = Path(sys.executable).resolve()
    return str(program), [] if base.is_relative_to("/usr") else [base]


def _source(kind: str) -> str:
    folder = resources.files("agentd.sandbox.battery.inside")
    return (folder / f"{kind}.py").read_text(encoding="utf-8") + _END


def _judge(attack: Attack, done: Finished, noticed: Sequence[str]) -> tuple[Verdict, str]:
    said = done.output.strip().rpartition("\n")[2]
    word, _, rest = said.partition(" ")
    if noticed or word == "ESCAPED":
        return Verdict.ESCAPED, "; ".join([*([rest] if word == "ESCAPED" else []), *noticed])
    if word == "SKIPPED":
        return Verdict.SKIPPED, rest
    if attack.name == "flood":
        whole = len(done.output) > 2 * _MOST_CHARS
        return (Verdict.ESCAPED if whole else Verdict.HELD), f"{len(done.output)} characters kept"
    if word == "HELD":
        return Verdict.HELD, rest
    if attack.kind == "resources" or attack.name == "spin":
        how = "its time was over" if done.timed_out else f"ended, exit code {done.exit_code}"
        return Verdict.HELD, how
    return Verdict.UNCLEAR, said[-200:] or f"exit code {done.exit_code}"


async def _left(arena: Arena) -> list[str]:
    """Whatever carries our mark must be gone; what is not is ended here."""
    with anyio.move_on_after(_GONE_S):
        while arena.left_processes():  # noqa: ASYNC110 - other processes have no event
            await anyio.sleep(0.01)
        return []
    left = arena.left_processes()
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"{len(left)} processes stayed behind"] if left else []
