"""`scripts/soak`, for some seconds; and that what it looks for would be found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.soaks.gauges import Sample, growths, processes_of

_ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(90)
def test_some_seconds_of_faults_lose_nothing_and_let_nothing_grow() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.soaks", "--seconds", "5", "--rate", "15", "--json"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (report["lost"], report["troubles"]) == ([], [])
    grown = [each for each in report["growths"] if not each["ok"]]
    # Five seconds beside other tests say nothing about latency.
    assert [each for each in grown if each["unit"] != "ms"] == []
    assert done.returncode == (1 if grown else 0)
    assert set(report["tasks"]) <= {"completed", "cancelled"}
    assert sum(report["tasks"].values()) >= 30
    assert {"kill -9", "SIGTERM and restart"} <= set(report["faults"])
    names = {each["name"] for each in report["growths"]}
    assert {"memory of a daemon", "open descriptors", "processes"} <= names


def test_wrong_usage_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.soaks", "--seconds", "1"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--seconds must be 5 at least" in done.stderr


def _samples(**grow: float) -> list[Sample]:
    """A hundred seconds; what is named in `grow` rises by so much each second."""
    still = {"memory_mb": 150.0, "descriptors": 15.0, "processes": 2.0, "file_mb": 1.0}
    return [
        Sample(
            at_s=at, acknowledged=10 * at, **{n: v + at * grow.get(n, 0) for n, v in still.items()}
        )
        for at in range(100)
    ]


@pytest.mark.parametrize(
    ("grow", "found"),
    [
        ({}, set()),
        ({"file_mb": 0.1}, set()),  # 10 kB for each task, all along
        ({"memory_mb": 1}, {"memory of a daemon"}),
        ({"descriptors": 0.5}, {"open descriptors"}),
        ({"processes": 0.1}, {"processes"}),
    ],
)
def test_growth_is_found(grow: dict[str, float], found: set[str]) -> None:
    seen = growths(_samples(**grow), {}, 100)
    assert {each.name for each in seen if not each.ok} == found


def test_a_file_that_grows_faster_and_faster_is_found() -> None:
    samples = [
        Sample(
            at_s=at, memory_mb=1, descriptors=1, processes=1, file_mb=at**3 / 1e4, acknowledged=at
        )
        for at in range(100)
    ]
    seen = growths(samples, {}, 100)
    assert [each.name for each in seen if not each.ok] == ["database file per task"]


def test_latency_that_doubles_and_more_is_found() -> None:
    measured = [(float(at), 20.0 if at < 60 else 300.0) for at in range(100)]
    seen = growths(_samples(), {"pickup": measured, "enqueueing": measured[:10]}, 100)
    assert [(each.name, each.ok) for each in seen if each.unit == "ms"] == [("pickup", False)]


def test_processes_of_a_home_are_found_by_their_environment(tmp_path: Path) -> None:
    assert processes_of(tmp_path) == []
    with subprocess.Popen(["sleep", "60"], env={"AGENTD_HOME": str(tmp_path)}) as process:
        try:
            while not (found := processes_of(tmp_path)):
                pass  # it has been forked, and is not yet what it will be
            assert found == [process.pid]
        finally:
            process.kill()
