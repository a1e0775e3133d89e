"""Daemons that stop, and what their tasks come to: real processes, real signals."""

import signal
from pathlib import Path

import anyio

from agentd.domain.errors import StoreBusy
from agentd.store.file_lease import FileLease
from tests.processes import Daemon, Home, new_home

_TURN = """
[[turn]]
delay_s = {delay}
[[turn.call]]
tool = "write"
input = {{ path = "done-by-{name}.txt", content = "x" }}
[[turn]]
[[turn.call]]
tool = "complete_task"
input = {{ summary = "Done by {name}." }}
"""
_KILLS = '''
import os, signal
from agentd.toolkit.definition import tool

@tool(group="probe", effect="read")
def deadly() -> str:
    """Ends the process, as running out of memory does."""
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
'''


def _home(path: Path, **variables: str) -> Home:
    quick = {
        "DAEMON__HEARTBEAT_SECONDS": "0.5",
        "DAEMON__LEASE_SECONDS": "1.5",
        "DAEMON__REAP_SECONDS": "0.5",
        "AGENT__ATTEMPT_BASE_SECONDS": "0.01",
    }
    return new_home(path, **quick, **variables)


def _script(path: Path, name: str, delay: float) -> str:
    script = path / f"{name}.toml"
    script.write_text(_TURN.format(name=name, delay=delay))
    return f"scripted:{script}"


async def _stop_at_rest(daemon: Daemon, home: Home) -> None:
    """SIGSTOP, at a moment when the process does not hold the database."""
    lease = FileLease(home.path / "agentd.duckdb")
    while True:
        daemon.signal(signal.SIGSTOP)
        try:
            lease.acquire(0.05)
        except StoreBusy:
            daemon.signal(signal.SIGCONT)
            await anyio.sleep(0.02)
            continue
        lease.release()
        lease.close()
        return


async def test_a_daemon_that_was_stopped_for_longer_than_its_lease_harms_nothing(
    tmp_path: Path,
) -> None:
    home = _home(tmp_path)
    async with home.daemon("--model", _script(tmp_path, "first", delay=60)) as first:
        task_id = await home.enqueue("Survive.")
        await first.logged("run started")
        async with home.daemon("--model", _script(tmp_path, "second", delay=0)) as second:
            await _stop_at_rest(first, home)
            await second.logged("took over from daemons that hang")
            await second.logged("run ended by a terminal tool")
            first.signal(signal.SIGCONT)
            await first.logged("run lost: its lease had run out")
        again = await home.enqueue("Go on.", "--model", _script(tmp_path, "third", delay=0))
        await first.logged("run ended by a terminal tool")
        assert (await home.task(again))["state"] == "completed"
    task = await home.task(task_id)
    assert (task["state"], task["output"], task["attempt"]) == ("completed", "Done by second.", 2)
    assert [run["ending"] for run in task["runs"]] == ["lost", "completed"]
    assert not (home.workspace / "done-by-first.txt").exists()


async def test_a_daemon_that_is_slow_keeps_its_tasks_by_its_heartbeat(tmp_path: Path) -> None:
    home = _home(tmp_path)
    async with home.daemon("--model", _script(tmp_path, "first", delay=4)) as first:
        task_id = await home.enqueue("Take your time.")
        await first.logged("run started")
        async with home.daemon("--model", _script(tmp_path, "second", delay=0)):
            await first.logged("run ended by a terminal tool")
    task = await home.task(task_id)
    assert (task["output"], task["attempt"]) == ("Done by first.", 1)


async def test_a_task_that_kills_its_daemon_is_set_aside_after_three_attempts(
    tmp_path: Path,
) -> None:
    home = _home(tmp_path)
    (home.path / "tools" / "deadly.py").write_text(_KILLS)
    script = tmp_path / "deadly.toml"
    script.write_text('[[turn]]\n[[turn.call]]\ntool = "deadly"\n')
    task_id = await home.enqueue("Kill.", "--model", f"scripted:{script}")
    ends: list[int] = []
    while (await home.task(task_id))["state"] != "failed" and len(ends) < 10:
        ends.append((await home.run("run", "--once")).code)
    assert ends.count(-signal.SIGKILL) == 3
    task = await home.task(task_id)
    assert task["state"] == "failed"
    assert "poison" in task["error"]
