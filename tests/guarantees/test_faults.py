"""A world that fails: the disk, the file, the model's server. Each has its expected end."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.domain.task import TaskState
from tests.desk import desk
from tests.messages_turns import DONE, Answer, Body, Failure
from tests.processes import new_home

_SCRIPT = """
[[turn]]
delay_s = {delay}
[[turn.call]]
tool = "complete_task"
input = {{ summary = "Done." }}
"""
# In a mount namespace of its own: argv is the folder to mount, the home in it, and a script.
_ON_A_SMALL_DISK = """
import json, os, subprocess, sys, time
folder, home, script = sys.argv[1:]

def sh(*words):
    subprocess.run(words, check=True)

def agentd(*words):
    done = subprocess.run(
        [sys.executable, "-m", "agentd", *words], capture_output=True, text=True, timeout=60
    )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

def until(state, task_id):
    for _ in range(500):
        said = agentd("task", "view", task_id, "--json")["out"] or "{}"
        if json.loads(said).get("state") == state:
            return state
        time.sleep(0.05)

def enqueue(*words):
    return json.loads(agentd("enqueue", "x", "--json", *words)["out"])["task"]["id"]

def start():
    daemon = subprocess.Popen(
        [sys.executable, "-m", "agentd", "run"], stderr=subprocess.PIPE, text=True
    )
    while "daemon started" not in daemon.stderr.readline():
        assert daemon.poll() is None
    return daemon

sh("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder)
os.environ.update(AGENTD_HOME=home, AGENTD_AGENT__MODEL=f"scripted:{script}")
agentd("init")
said = {}
"""
_FULL = """
daemon = start()
before = enqueue()
said["before"] = until("completed", before)
with open(folder + "/ballast", "wb", buffering=0) as ballast:
    try:
        while True:
            ballast.write(bytes(4096))
    except OSError:
        pass
said["full"] = agentd("enqueue", "x" * 100_000)
said["daemon"] = daemon.poll()
os.unlink(folder + "/ballast")
said["after"] = until("completed", enqueue())
said["still"] = json.loads(agentd("task", "view", before, "--json")["out"])["state"]
daemon.terminate()
said["exit"] = daemon.wait(30)
print(json.dumps(said))
"""
_READ_ONLY = """
before = enqueue()
sh("mount", "-o", "remount,ro", folder)
said["enqueue"] = agentd("enqueue", "x")
said["run"] = agentd("run")
sh("mount", "-o", "remount,rw", folder)
daemon = start()
said["after"] = until("completed", before)
daemon.terminate()
said["exit"] = daemon.wait(30)
print(json.dumps(said))
"""


def on_a_small_disk(scenario: str, tmp_path: Path) -> dict[str, object]:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    disk, script = tmp_path / "disk", tmp_path / "script.toml"
    disk.mkdir()
    script.write_text(_SCRIPT.format(delay=0))
    program = _ON_A_SMALL_DISK + scenario
    words = [sys.executable, "-c", program, str(disk), str(disk / "home"), str(script)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        ["unshare", "-rm", "--kill-child", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout)
    return said


@pytest.mark.timeout(100)
def test_a_full_disk_refuses_what_it_can_not_keep_and_everything_goes_on_after_it(
    tmp_path: Path,
) -> None:
    said = on_a_small_disk(_FULL, tmp_path)
    assert said["before"] == said["after"] == said["still"] == "completed"
    full = said["full"]
    assert isinstance(full, dict)
    assert full["code"] == 1
    assert "full" in full["err"]
    assert "Traceback" not in full["err"]
    assert said["daemon"] is None  # it lives
    assert said["exit"] == 0


@pytest.mark.timeout(100)
def test_a_disk_that_becomes_read_only_is_said_and_what_was_acknowledged_stays(
    tmp_path: Path,
) -> None:
    said = on_a_small_disk(_READ_ONLY, tmp_path)
    for refused in (said["enqueue"], said["run"]):
        assert isinstance(refused, dict)
        assert refused["code"] == 1
        assert "read-only" in refused["err"].lower()
        assert "Traceback" not in refused["err"]
    assert said["after"] == "completed"


@pytest.mark.parametrize(
    "failure",
    [
        Failure(529, "overloaded_error"),
        Failure(fault="stall"),
        Failure(fault="cut"),
        Failure(fault="garbage", message="{not json"),
    ],
    ids=["529", "stall", "cut", "garbage"],
)
async def test_an_outage_that_outlasts_the_retries_costs_attempts_and_no_task(
    failure: Failure, tmp_path: Path
) -> None:
    left = 5  # of the failures: two runs give up after two tries each

    def behave(_: Body) -> Answer:
        nonlocal left
        left -= 1
        return failure if left >= 0 else DONE

    quick: dict[str, Any] = {"models__retry_attempts": 2}
    if failure.fault == "stall":  # the others are not to stall because this machine is busy
        quick["models__stall_seconds"] = 0.5
    quick |= {"models__breaker_threshold": 100}  # else the second run waits for its cooldown
    again = {"agent__max_attempts": 3, "agent__attempt_base_seconds": 0}
    async with desk(tmp_path, behave=behave, **quick, **again) as at:
        task = await at.work()
        endings = [run["ending"] for run in await at.runs.of_task(task.id)]
        errors = [run["error"] for run in await at.runs.of_task(task.id)]
    assert (task.state, task.attempt) == (TaskState.COMPLETED, 3)
    assert endings == ["failed", "failed", "completed"]
    assert all(errors[:2])
    assert task.error is None


async def test_a_database_that_is_replaced_under_the_daemon(tmp_path: Path) -> None:
    """Its run has no row any more and ends; what stands in the new file is worked."""
    slow, quick = tmp_path / "slow.toml", tmp_path / "quick.toml"
    slow.write_text(_SCRIPT.format(delay=60))
    quick.write_text(_SCRIPT.format(delay=0))
    (tmp_path / "other").mkdir()
    other = new_home(tmp_path / "other", AGENT__MODEL=f"scripted:{quick}")
    in_new = await other.enqueue("In the new file.")
    home = new_home(
        tmp_path,
        AGENT__MODEL=f"scripted:{quick}",
        DAEMON__HEARTBEAT_SECONDS="0.5",
        DAEMON__LEASE_SECONDS="2",
    )
    async with home.daemon() as daemon:
        await home.enqueue("In the old file.", "--model", f"scripted:{slow}")
        await daemon.logged("run started")
        await anyio.sleep(0.3)  # the daemon lets go of the file after a tenth of a second
        shutil.copy(other.path / "agentd.duckdb", home.path / "new")
        (home.path / "new").rename(home.path / "agentd.duckdb")
        (home.path / "agentd.duckdb.wal").unlink(missing_ok=True)
        await daemon.logged("run lost: its lease had run out")
        await home.run("enqueue", "One more.")
        await daemon.logged("run ended by a terminal tool", times=2)
        assert (await home.task(in_new))["state"] == "completed"
