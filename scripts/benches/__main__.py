"""`scripts/bench [NAME …] [--runs N] [--json]`: measure, print; exit 1 if a target is missed."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict

import duckdb

from scripts.benches import code, cold, commands, daemons, files, history, mcp, rivals, store
from scripts.benches.figures import Figure, merged, table

# What depends on a quick disk comes first: the others leave it busy with writing back.
_BENCHES: dict[str, Callable[[], list[Figure]]] = {
    "pickup": daemons.measure_pickup,
    "cold": cold.measure,
    "code": code.measure,
    "commands": commands.measure,
    "store": store.measure,
    "files": files.measure,
    "throughput": daemons.measure_throughput,
    "wall": daemons.measure_wall,
    "history": history.measure_history,
    "mcp": mcp.measure_mcp,
    "rivals": rivals.measure_rivals,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_BENCHES)}")
    parser.add_argument("--runs", type=int, default=1, help="the median of so many runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(_BENCHES)
    if unknown:
        parser.error(f"there is no bench {min(unknown)}; there are {', '.join(_BENCHES)}")
    names = asked.names or list(_BENCHES)
    rows: list[tuple[Figure, float, float]] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        rows += merged([_BENCHES[name]() for _ in range(asked.runs)])
    if asked.json:
        print(json.dumps([{**asdict(f), "min": low, "max": high} for f, low, high in rows]))
    else:
        print(_machine(asked.runs), table(rows), sep="\n\n")
    return 1 if any(figure.reached is False for figure, _, _ in rows) else 0


def _machine(runs: int) -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python "
        f"{platform.python_version()}, DuckDB {duckdb.__version__}, {runs} run(s)."
    )


if __name__ == "__main__":
    sys.exit(main())
