"""How long the command line takes from nothing to its end, beside the interpreter with DuckDB."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from scripts.benches.figures import Figure
from tests.processes import new_home

_TIMES = 9


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        home = new_home(Path(folder))
        commands = {
            "python": [sys.executable, "-c", "import duckdb"],
            "help": home.command("--help"),
            "enqueue": home.command("enqueue", "Do it."),
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(_TIMES):
            for name, command in commands.items():
                taken[name].append(_seconds(command, home.environment))
    reference, shown, enqueued = (median(taken[name][1:]) for name in commands)
    return [
        Figure('python -c "import duckdb"', reference * 1000, "ms"),
        Figure("agentd --help", shown * 1000, "ms"),
        Figure("… as a ratio", shown / reference, "×"),
        Figure("agentd enqueue", enqueued * 1000, "ms"),
        Figure("… as a ratio", enqueued / reference, "×", at_most=3),
    ]


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.monotonic()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.monotonic() - start
