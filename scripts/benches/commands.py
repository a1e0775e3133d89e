"""What it costs to confine a command, and to let it work on a branch of the files."""

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import anyio

from agentd.domain.clock import SystemClock
from agentd.domain.run import CallKey
from agentd.sandbox.branches import Branches
from agentd.sandbox.commands import Command, Commands, CommandSettings
from agentd.sandbox.roots import Root
from scripts.benches.figures import Figure

_TIMES = 40
_TRUE = Command(["true"], 10)


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        return anyio.run(_measure, Path(folder))


async def _measure(folder: Path) -> list[Figure]:
    workspace = folder / "workspace"
    workspace.mkdir()
    settings = CommandSettings(branches=folder / "branches")
    commands = Commands([Root(workspace)], settings)
    features = await commands.features()
    if not features.confines:
        print(f"commands can not be confined here: {'; '.join(features.lacking)}")
        return []
    branches = Branches(folder / "branches", commands, SystemClock(), 60)
    number = 0

    async def branched() -> None:
        nonlocal number
        number += 1
        await branches.run(CallKey(f"bench/{number}"), _TRUE)

    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "plain": lambda: anyio.run_process(["true"]),
        "confined": lambda: commands.run(_TRUE),
        "branch": branched,
    }
    taken = await _taken_ms(ways)
    plain = taken["plain"]
    return [
        Figure("true, a plain process", plain, "ms"),
        Figure("true, confined", taken["confined"], "ms"),
        Figure("… more than plain", taken["confined"] - plain, "ms", at_most=30),
        Figure("true, confined and on a branch", taken["branch"], "ms"),
        Figure("… more than plain", taken["branch"] - plain, "ms", at_most=30),
    ]


async def _taken_ms(ways: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, float]:
    """The median of each, measured in turns: an hour of a slow machine is slow for all of them."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_TIMES):
        for name, way in ways.items():
            start = time.perf_counter()
            await way()
            taken[name].append((time.perf_counter() - start) * 1000)
    return {name: median(times) for name, times in taken.items()}
