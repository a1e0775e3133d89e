"""Prints the kill matrix of docs/reliability.md; exit 1 when a promise is broken.

`programs`: that of calls inside programs of the model.
"""

import sys
import tempfile
from pathlib import Path

import anyio

from tests import program_kills
from tests.kill_matrix import BOUNDARIES, EFFECTS, Cell, keeps_its_promise, kill_at


async def _print_matrix() -> bool:
    """As a table; whether every promise was kept."""
    kept = True
    print(f"| killed with `kill -9` … | {' | '.join(EFFECTS)} |")
    print("|---|" + "---|" * len(EFFECTS))
    for boundary, words in BOUNDARIES.items():
        with tempfile.TemporaryDirectory(prefix="agentd-kill-") as folder:
            cells = await kill_at(boundary, Path(folder))
        kept &= all(keeps_its_promise(effect, cell) for effect, cell in cells.items())
        shown = [_in_words(effect, cells[effect]) for effect in EFFECTS]
        print(f"| {words} | {' | '.join(shown)} |", flush=True)
    return kept


async def _print_programs() -> bool:
    kept = True
    print(f"| killed with `kill -9` … | language | {' | '.join(EFFECTS)} |")
    print("|---|---|" + "---|" * len(EFFECTS))
    for boundary, words in BOUNDARIES.items():
        for language in ("python", "typescript"):
            with tempfile.TemporaryDirectory(prefix="agentd-kill-") as folder:
                _, outcomes = await program_kills.killed_at(boundary, language, Path(folder))
            shown: list[str] = []
            for effect, outcome in outcomes.items():
                holds = program_kills.keeps_its_promise(effect, outcome)
                kept &= holds
                unknown = ", told that it is unknown" if "unknown" in outcome.told[0] else ""
                shown.append(f"{outcome.effects} of 2{unknown}{'' if holds else ' **BROKEN**'}")
            print(f"| {words} | {language} | {' | '.join(shown)} |", flush=True)
    return kept


def _in_words(effect: str, cell: Cell) -> str:
    told = ", told that it is unknown" if "outcome_unknown" in cell.told else ""
    broken = "" if keeps_its_promise(effect, cell) else " **BROKEN**"
    return f"{cell.effects} ×{told}{broken}"


if __name__ == "__main__":
    asked = _print_programs if sys.argv[1:] == ["programs"] else _print_matrix
    sys.exit(0 if anyio.run(asked) else 1)
