"""`scripts/soak [--seconds N] [--rate N] [--json]`: run, report; exit 1 on growth or loss.

Two daemons work on one home while tasks of every kind come in; one fault follows another. At the
end every task that was acknowledged must have ended, and nothing may have grown beyond its bound.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.store.store import Store
from scripts.soaks.gauges import Gauges, Growth, growths, processes_of
from scripts.soaks.load import Load, Model
from scripts.soaks.twins import Twins, two_daemons
from tests.mcp_desk import entry
from tests.messages_api import MessagesApi
from tests.processes import Home, new_home

_SETTLE_S = 60.0
_WARM_UP_TASKS = 24  # each kind some times: what is loaded once is no growth
_ENDED = ("completed", "cancelled")


@dataclass(frozen=True, slots=True)
class Report:
    """`lost`: acknowledged tasks that did not end well, with what became of each."""

    seconds: float
    tasks: dict[str, int]
    kinds: dict[str, int]
    faults: dict[str, int]
    growths: Sequence[Growth]
    lost: Sequence[str]
    troubles: Sequence[str]

    @property
    def ok(self) -> bool:
        grown = [each for each in self.growths if not each.ok]
        return not (grown or self.lost or self.troubles)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long; 5 at least")
    parser.add_argument("--rate", type=float, default=6, help="tasks that come in each second")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    if asked.seconds < 5 or asked.rate <= 0:
        parser.error("--seconds must be 5 at least, --rate above 0")
    with tempfile.TemporaryDirectory(prefix="agentd-soak-") as folder:
        report = anyio.run(_soak, Path(folder), asked.seconds, asked.rate)
    if asked.json:
        rows = [{**asdict(each), "ok": each.ok} for each in report.growths]
        print(json.dumps({**asdict(report), "growths": rows, "ok": report.ok}))
    else:
        print(_text(report))
    return 0 if report.ok else 1


async def _soak(folder: Path, seconds: float, rate: float) -> Report:
    model = Model()
    async with MessagesApi(model, keep_bodies=False) as api:
        home = _home(folder, api.url)
        async with open_store(load_config(home.path)) as store:
            load = Load(store, rate)
            async with two_daemons(home, folder, model) as twins:
                gauges = Gauges(home.path, twins.first.pid, lambda: len(load.acknowledged))
                started_s = await _run(load, twins, gauges, seconds)
                rows = await _settled(store)
                await twins.end()
            troubles = _troubles(home, twins, api.violations)
    # Of quiet moments: while a daemon is stopped or the model is ill, waiting is what is expected.
    quiet = {
        name: [(at_s, ms) for at_s, ms in measured if twins.is_quiet(started_s + at_s)]
        for name, measured in (("enqueueing", load.enqueued_ms), ("pickup", _pickups(rows, load)))
    }
    return Report(
        seconds=round(time.monotonic() - started_s, 1),
        tasks=dict(Counter(row["state"] for row in rows)),
        kinds=dict(Counter(load.acknowledged.values())),
        faults=dict(Counter(name for name, _, _ in twins.faults)),
        growths=growths(gauges.samples, quiet, seconds),
        lost=_lost(rows, load),
        troubles=troubles,
    )


async def _run(load: Load, twins: Twins, gauges: Gauges, seconds: float) -> float:
    await load.run(time.monotonic(), lambda: len(load.acknowledged) >= _WARM_UP_TASKS)
    await _settled(load.store)
    load.enqueued_ms.clear()
    started_s = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - started_s > seconds

    async with anyio.create_task_group() as group:
        group.start_soon(load.run, started_s, is_over)
        twins.lasting_s = min(2.0, seconds / 20)
        group.start_soon(twins.suffer, max(1.5, seconds / 80), is_over)
        group.start_soon(gauges.run, started_s, max(0.1, seconds / 600), is_over)
    return started_s


async def _settled(store: Store) -> list[dict[str, Any]]:
    """All tasks, as soon as none is left to be worked; or as they are when it takes too long."""
    sql = "SELECT id, state, error, created_at, started_at FROM tasks"
    before = time.monotonic()
    while True:
        async with store.transaction() as conn:
            rows = await conn.fetch(sql)
        ended = all(row["state"] in (*_ENDED, "failed") for row in rows)
        if ended or time.monotonic() - before > _SETTLE_S:
            return rows
        await anyio.sleep(0.2)


def _lost(rows: Sequence[dict[str, Any]], load: Load) -> list[str]:
    found = {row["id"]: row for row in rows}
    lost = [f"{each}: vanished" for each in load.acknowledged if each not in found]
    return lost + [
        f"{row['id']} ({load.acknowledged.get(row['id'])}): {row['state']}: {row['error']}"
        for row in rows
        if row["state"] not in _ENDED
    ]


def _pickups(rows: Sequence[dict[str, Any]], load: Load) -> list[tuple[float, float]]:
    """When each task came, and how long it lay; those of a conversation wait for each other."""
    first = sorted(row["created_at"] for row in rows)[_WARM_UP_TASKS]
    return [
        (
            (row["created_at"] - first).total_seconds(),
            (row["started_at"] - row["created_at"]).total_seconds() * 1e3,
        )
        for row in rows
        if row["started_at"] is not None and load.acknowledged.get(row["id"]) != "talk"
    ]


def _troubles(home: Home, twins: Twins, violations: Sequence[str]) -> list[str]:
    troubles = [f"the model server was asked wrongly: {each}" for each in violations]
    # One that was asked before it had begun to listen ends of the signal itself.
    codes = [each for each in twins.codes if each not in (0, -signal.SIGTERM)]
    troubles += [f"a daemon that was asked to stop exited with {each}" for each in codes]
    left = sorted(path.name for path in (home.path / "run").iterdir())
    if left:
        troubles.append(f"left in run/: {left}")
    if processes := processes_of(home.path):
        troubles.append(f"left running: {processes}")
    for log in sorted(twins.folder.glob("*.log")):
        if "Traceback" in (text := log.read_text(encoding="utf-8", errors="replace")):
            troubles.append(f"{log.name}: {text[text.index('Traceback') :][:2000]}")
    return troubles


def _home(folder: Path, url: str) -> Home:
    home = new_home(
        folder,
        AGENT__MODEL="anthropic:claude-haiku-4-5",
        MODELS__ANTHROPIC__API_KEY="key-1",
        MODELS__ANTHROPIC__BASE_URL=url,
        # An outage passes within these tries: the tasks of a soak must not fail of it.
        MODELS__RETRY_ATTEMPTS="100",
        MODELS__RETRY_BASE_SECONDS="0.1",
        MODELS__RETRY_CAP_SECONDS="1",
        MODELS__STALL_SECONDS="3",
        # An outage lasts two seconds here, so a minute of rest would be most of the soak.
        MODELS__BREAKER_COOLDOWN_SECONDS="2",
        DAEMON__CONCURRENCY="8",
        DAEMON__DRAIN_SECONDS="5",
        WATCHDOG__INTERVAL_SECONDS="5",
        WATCHDOG__FIRST_SECONDS="0",
        MCP__CLOSE_SECONDS="1",
    )
    # Its processes are counted with the daemons', by the same variable.
    server = {"plain": entry(env={"AGENTD_HOME": str(home.path)})}
    (home.path / "mcp.json").write_text(json.dumps({"mcpServers": server}))
    return home


def _text(report: Report) -> str:
    lines = [f"{report.seconds:.0f} s; tasks: {_counts(report.tasks)}"]
    lines.append(f"kinds: {_counts(report.kinds)}")
    lines.append(f"faults: {_counts(report.faults)}")
    lines += ["", "| figure | start | end | at most | |", "|---|---:|---:|---:|---|"]
    for each in report.growths:
        mark = "" if each.ok else "**grown**"
        numbers = " | ".join(f"{n:.1f} {each.unit}" for n in (each.start, each.end, each.at_most))
        lines.append(f"| {each.name} | {numbers} | {mark} |")
    lines += ["", f"lost: {len(report.lost)}", *report.lost[:20], *report.troubles]
    return "\n".join(lines)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
