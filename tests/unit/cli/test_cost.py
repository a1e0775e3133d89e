"""`agentd cost`, and the limits that tasks are given on the command line."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.ids import RunId, SessionId, TaskId, new_id
from agentd.store.model_calls import ModelCall
from agentd.store.queries import load
from tests.unit.cli.conftest import Agentd

pytestmark = pytest.mark.usefixtures("home")
_SCRIPT = """
[[turn]]
usage = { input_tokens = 1000, output_tokens = 200, cache_write_tokens = 30, cache_read_tokens = 4 }
[[turn.call]]
tool = "ls"
[[turn]]
usage = { input_tokens = 1000, output_tokens = 200 }
[[turn.call]]
tool = "complete_task"
input = { summary = "Done." }
"""
_PRICES = """
[models.prices."scripted:"]
input = 1.0
output = 10.0
cache_write = 2.0
cache_read = 0.5
"""


@pytest.fixture
def script(home: Path) -> str:
    path = home / "script.toml"
    path.write_text(_SCRIPT)
    (home / "agentd.toml").write_text(_PRICES)
    return f"scripted:{path}"


def enqueue(agentd: Agentd, *arguments: str) -> str:
    done = agentd("enqueue", "Do it.", *arguments)
    assert done.code == 0, done.err
    return done.out.strip()


def drain() -> None:
    command = [sys.executable, "-m", "agentd", "run", "--drain"]
    subprocess.run(command, check=True, capture_output=True)


def called(home: Path, task_id: str, *calls: ModelCall) -> None:
    """Write the rows of `calls`, as runs of the task do."""

    async def write() -> None:
        async with open_store(load_config(home)) as store, store.transaction() as conn:
            for call in calls:
                whose = replace(call, id=new_id(), task_id=task_id, session_id=task_id)
                await conn.execute(load("model_calls")["add"], **whose.parameters())

    anyio.run(write)


def call(**facts: Any) -> ModelCall:
    at = datetime.now(UTC) - timedelta(hours=1)
    nobody = ("", SessionId(""), TaskId(""), RunId("r"))
    return ModelCall(
        *nobody, **{"model": "m", "attempt": 1, "started_at": at, "duration_ms": 1, **facts}
    )


_PAID = call(outcome="ok", input_tokens=1000, output_tokens=200, cost_microusd=3000)
_BROKEN = call(outcome="cut", cache_write_tokens=50, output_tokens=90, cost_microusd=1000)
_UNPRICED = call(outcome="ok", model="new", cache_read_tokens=4, output_tokens=10)
_OLD = replace(_PAID, started_at=datetime(2026, 1, 2, tzinfo=UTC), schedule_id="nightly")


def test_costs_are_shown_by_whatever_they_belong_to(agentd: Agentd, home: Path) -> None:
    assert agentd("cost").err.strip() == "No model calls."
    first, second = enqueue(agentd, "--title", "The first"), enqueue(agentd)
    called(home, first, _PAID, _BROKEN, _OLD)
    called(home, second, _UNPRICED)
    total = {
        "name": "total",
        "calls": 4,
        "failed": 1,
        "input_tokens": 2000,
        "cache_write_tokens": 50,
        "cache_read_tokens": 4,
        "output_tokens": 500,
        "cost_microusd": 7000,
        "estimated_microusd": 1000,
        "unpriced": 1,
    }
    today = _PAID.started_at.date().isoformat()
    for by, names in {
        "task": [first, second],
        "session": [first, second],
        "schedule": ["", "nightly"],
        "model": ["m", "new"],
        "day": [today, "2026-01-02"],
    }.items():
        found = agentd("cost", "--by", by, "--json").json
        assert found["total"] == total, by
        assert [each["name"] for each in found["costs"]] == names
        assert found["limits"] == []
    lines = agentd("cost", "--by", "task").out.splitlines()
    assert lines[1].split() == [
        *(first[-8:], "3", "1", "2,000", "50", "0", "490", "$0.0070"),
        *("The", "first"),
    ]
    assert lines[3].split()[-2:] == ["$0.0070", "1"]
    assert lines[4] == "$0.0010 of it is for calls that broke off."
    assert agentd("cost", "--limit", "1", "--json").json["total"] == total


def test_a_day_is_one_of_the_configured_zone(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_BUDGET__TIMEZONE", "Pacific/Kiritimati")  # 14 hours ahead
    called(home, enqueue(agentd), replace(_OLD, started_at=datetime(2026, 1, 2, 11, tzinfo=UTC)))
    (day,) = agentd("cost", "--by", "day", "--json").json["costs"]
    assert day["name"] == "2026-01-03"


def test_since_takes_durations_and_moments(agentd: Agentd, home: Path) -> None:
    called(home, enqueue(agentd), _PAID, _OLD)
    for since, calls in {"2h": 1, "2020-01-01": 2, "5000w": 2, "2999-01-01": 0}.items():
        assert agentd("cost", "--since", since, "--json").json["total"]["calls"] == calls, since
    for wrong in ("soon", "999999999w"):
        assert agentd("cost", "--since", wrong).code == 2


def test_limits_are_shown_with_what_is_left(
    agentd: Agentd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_BUDGET__TOTAL_USD", "1")
    monkeypatch.setenv("AGENTD_BUDGET__TASK_TOKENS", "50000")
    assert [each["spent"] for each in agentd("cost", "--json").json["limits"]] == [0, 0]
    task = enqueue(agentd)
    called(home, task, _PAID, _BROKEN)
    tokens, total = agentd("cost", "--json").json["limits"]
    assert tokens == {
        "limit": "task_tokens",
        "name": task,
        "allowed": 50_000,
        "spent": 1340,
        "under_way": 0,
        "left": 48_660,
    }
    assert (total["limit"], total["allowed"], total["spent"]) == ("total_usd", 1_000_000, 4000)
    assert "$0.9960" in agentd("cost").out


def test_a_limit_stops_a_task_and_a_person_raises_it(agentd: Agentd, script: str) -> None:
    task = enqueue(agentd, "--model", script, "--max-cost", "0.02", "--max-total-tokens", "90000")
    drain()
    view = agentd("task", "view", task)
    assert "task_usd is $0.0200" in view.out
    assert "$0.0200, 90,000 tokens" in view.out
    resumed = agentd("task", "resume", task, "--max-cost", "5", "--json").json
    assert resumed["limits"]["max_cost_microusd"] == 5_000_000
    assert resumed["limits"]["max_total_tokens"] == 90_000
    drain()
    assert agentd("task", "view", task, "--json").json["state"] == "completed"


@pytest.mark.parametrize("wrong", ["nan", "0", "-1", "inf", "much"])
def test_an_impossible_limit_is_refused(wrong: str, agentd: Agentd) -> None:
    done = agentd("enqueue", "x", "--max-cost", wrong)
    assert done.code == 2
    assert "--max-cost" in done.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DAY_USD", "0"),
        ("DAY_USD", "nan"),
        ("TASK_TOKENS", "1.5"),
        ("TIMEZONE", "Berlin"),
        ("TIMEZONE", "../x"),
        ("WHEN_SPENT", "cheaper"),
    ],
)
def test_an_impossible_setting_is_refused(
    variable: str, value: str, agentd: Agentd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AGENTD_BUDGET__{variable}", value)
    done = agentd("cost")
    assert done.code == 2
    assert "budget" in done.err.lower()
