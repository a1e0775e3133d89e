"""One `agentd run` process as a service: wake-up, signals, cancelling, logs."""

import json
import signal
from pathlib import Path

from tests.processes import Home, new_home

_SLOW = """
[[turn]]
delay_s = {delay}
[[turn.call]]
tool = "complete_task"
input = {{ summary = "Done." }}
"""
_TOOLS = '''
import time
from agentd.toolkit.definition import tool

@tool(group="probe")
def sleepy() -> str:
    """Sleeps in a thread."""
    time.sleep(60)
    return "awake"
'''


def _home(path: Path, *, delay: float = 0, **variables: str) -> Home:
    script = path / "script.toml"
    script.write_text(_SLOW.format(delay=delay))
    return new_home(path, **{"AGENT__MODEL": f"scripted:{script}", **variables})


async def test_enqueueing_in_another_process_wakes_a_daemon_that_would_sleep_for_an_hour(
    tmp_path: Path,
) -> None:
    home = _home(tmp_path, DAEMON__POLL_SECONDS="3600")
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Wake up.")
        await daemon.logged("run ended by a terminal tool")
        assert (await home.task(task_id))["state"] == "completed"


async def test_a_task_for_later_starts_when_its_time_comes_without_a_poll(tmp_path: Path) -> None:
    home = _home(tmp_path, DAEMON__POLL_SECONDS="3600")
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Later.", "--at", "1s")
        await daemon.logged("run ended by a terminal tool")
        task = await home.task(task_id)
    assert str(task["started_at"]) >= str(task["not_before"])


async def test_sigterm_lets_a_running_call_end_and_claims_nothing_more(tmp_path: Path) -> None:
    home = _home(tmp_path, delay=1, DAEMON__CONCURRENCY="1")
    async with home.daemon() as daemon:
        running = await home.enqueue("Running.")
        queued = await home.enqueue("Queued.")
        await daemon.logged("run started")
        daemon.signal(signal.SIGTERM)
        assert await daemon.ended() == 0
    first, second = await home.task(running), await home.task(queued)
    # The reply that was on its way is kept; what comes after it belongs to the next daemon.
    assert first["state"] in ("completed", "pending")
    assert (second["state"], second["attempt"]) == ("pending", 0)
    history = await home.run("session", "history", str(first["session_id"]), "--json")
    assert '"assistant"' in history.out
    assert (await home.run("run", "--drain")).code == 0
    assert (await home.task(running))["state"] == "completed"


async def test_what_does_not_end_in_time_is_put_back_unharmed(tmp_path: Path) -> None:
    home = _home(tmp_path, delay=60, DAEMON__DRAIN_SECONDS="0.1")
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Long.")
        await daemon.logged("run started")
        daemon.signal(signal.SIGINT)
        assert await daemon.ended() == 0
    task = await home.task(task_id)
    assert (task["state"], task["attempt"], task["error"]) == ("pending", 0, None)
    assert not list((home.path / "run").iterdir())


async def test_a_second_signal_leaves_at_once_and_loses_nothing(tmp_path: Path) -> None:
    home = _home(tmp_path, delay=60)
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Long.")
        await daemon.logged("run started")
        daemon.signal(signal.SIGTERM)
        await daemon.logged("draining; a second signal leaves at once")
        daemon.signal(signal.SIGTERM)
        assert await daemon.ended() == 1
    (tmp_path / "script.toml").write_text(_SLOW.format(delay=0))
    assert (await home.run("run", "--drain")).code == 0
    assert (await home.task(task_id))["state"] == "completed"


async def test_cancelling_ends_a_running_model_call(tmp_path: Path) -> None:
    home = _home(tmp_path, delay=60)
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Long.")
        await daemon.logged("run started")
        done = await home.run("task", "cancel", task_id, "--json")
        assert (done.code, json.loads(done.out)["state"]) == (0, "cancelled")
        await daemon.logged("run ended")


async def test_cancelling_ends_a_running_tool(tmp_path: Path) -> None:
    home = _home(tmp_path)
    (home.path / "tools" / "sleepy.py").write_text(_TOOLS)
    (tmp_path / "script.toml").write_text('[[turn]]\n[[turn.call]]\ntool = "sleepy"\n')
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Sleep.")
        await daemon.logged("run started")
        done = await home.run("task", "cancel", task_id)
        assert done.code == 0, done.err
        assert "cancelled" in done.out


async def test_a_dead_daemons_task_is_taken_over_by_one_that_lives(tmp_path: Path) -> None:
    home = _home(tmp_path, delay=60)
    quick = tmp_path / "quick.toml"
    quick.write_text(_SLOW.format(delay=0))
    async with home.daemon() as first:
        task_id = await home.enqueue("Survive.")
        await first.logged("run started")
        async with home.daemon("--model", f"scripted:{quick}") as second:
            first.signal(signal.SIGKILL)
            await first.ended()
            await second.logged("took over from dead daemons")
            await second.logged("run ended by a terminal tool")
    task = await home.task(task_id)
    assert (task["state"], task["attempt"]) == ("completed", 2)


async def test_every_line_about_a_task_names_task_session_and_run(tmp_path: Path) -> None:
    home = _home(tmp_path)
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Log.")
        await daemon.logged("run ended by a terminal tool")
    about = [line for line in daemon.lines if line["event"] in ("run started", "tool")]
    assert len(about) == 2
    for line in about:
        assert line["task"] == task_id
        assert line["session"] == task_id
        assert line["run"] == f"{task_id}.1"


async def test_once_works_one_task_and_drain_all(tmp_path: Path) -> None:
    home = _home(tmp_path)
    ids = [await home.enqueue(f"Task {number}.") for number in range(3)]
    assert (await home.run("run", "--once")).code == 0
    states = [(await home.task(each))["state"] for each in ids]
    assert states == ["completed", "pending", "pending"]
    assert (await home.run("run", "--drain")).code == 0
    assert [(await home.task(each))["state"] for each in ids] == ["completed"] * 3


async def test_a_daemon_that_can_not_use_its_database_says_why_and_exits(tmp_path: Path) -> None:
    home = _home(tmp_path)
    (home.path / "agentd.duckdb").write_bytes(b"this is no database, " * 1000)
    done = await home.run("run")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "not a" in done.err or "no " in done.err
