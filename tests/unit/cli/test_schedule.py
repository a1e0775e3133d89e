"""`agentd schedule …` as people type it."""

import shlex
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Agentd

pytestmark = pytest.mark.usefixtures("home")


def test_a_schedule_from_its_adding_to_its_removal(agentd: Agentd) -> None:
    words = 'add "0 9 * * 1-5" "Look at the mail." --timezone Europe/Berlin --session main --title '
    words += "Mail --missed skip --overlap skip --gate true --priority high --json"
    added = agentd("schedule", *shlex.split(words)).json
    short = added["id"][-8:]
    (listed,) = agentd("schedule", "list", "--json").json
    assert listed == added
    assert "Mail" in agentd("schedule", "list").out
    viewed = agentd("schedule", "view", short)
    assert "Look at the mail." in viewed.out
    assert agentd("schedule", "disable", short, "--json").json["next_due"] is None
    assert "disabled" in agentd("schedule", "list").out
    assert "it is disabled" in agentd("schedule", "explain", short).out
    assert agentd("schedule", "enable", short, "--json").json["next_due"] == added["next_due"]
    assert "It fires next at" in agentd("schedule", "explain", short).out
    assert agentd("schedule", "remove", short).code == 0
    assert agentd("schedule", "list", "--json").json == []
    assert agentd("schedule", "view", short).code == 1


def test_a_trigger_enqueues_a_task_that_names_its_schedule(agentd: Agentd) -> None:
    added = agentd("schedule", "add", "@daily", "Do it.", "--overlap", "skip", "--json").json
    task_id = agentd("schedule", "trigger", added["id"]).out.strip()
    task = agentd("task", "view", task_id, "--json").json
    assert (task["schedule_id"], task["prompt"]) == (added["id"], "Do it.")
    again = agentd("schedule", "trigger", added["id"])
    assert again.code == 1
    assert f"task {task_id} is unfinished" in again.out
    ledger = agentd("schedule", "view", added["id"], "--json").json["ledger"]
    assert [line["occurrence"]["outcome"] for line in ledger] == ["skipped", "fired"]


def test_simulation_shows_the_exact_times(agentd: Agentd) -> None:
    window = ("--from", "2027-03-13T00:00", "--to", "2027-03-16T00:00")
    zone = ("--timezone", "America/New_York")
    shown = agentd("schedule", "simulate", "30 2 * * *", *window, *zone)
    assert shown.out.split() == [
        "2027-03-13T02:30:00-05:00",
        "2027-03-14T03:00:00-04:00",
        "2027-03-15T02:30:00-04:00",
    ]
    as_json = agentd("schedule", "simulate", "30 2 * * *", *window, *zone, "--json").json
    assert [each["local"] for each in as_json] == shown.out.split()
    added = agentd("schedule", "add", "30 2 * * *", "x", *zone, "--json").json
    assert agentd("schedule", "simulate", added["id"], *window).out == shown.out
    assert len(agentd("schedule", "simulate", "@hourly", "--limit", "3").out.split()) == 3
    assert "not due" in agentd("schedule", "simulate", "2020-01-01T00:00").err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("add", "soon", "x"), 1, "no time to run at"),
        (("add", "every 5s", "x"), 1, "min_interval_seconds"),
        (("add", "@daily", "x", "--timezone", "Mars/Phobos"), 1, "no time zone"),
        (("add", "@daily", "  "), 2, "PROMPT is empty"),
        (("add", "@daily", "x", "--missed", "often"), 2, "often"),
        (("simulate", "nonsense"), 1, "no time to run at"),
        (("simulate", "@daily", "--from", "soon"), 2, "soon"),
        (("explain", "nothing"), 1, "no schedule"),
        (("trigger", "nothing"), 1, "no schedule"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], code: int, says: str, agentd: Agentd) -> None:
    done = agentd("schedule", *words)
    assert done.code == code
    assert says in done.err


def test_a_full_home_says_so(agentd: Agentd, home: Path) -> None:
    (home / "agentd.toml").write_text("[schedules]\nmost = 1\n")
    assert agentd("schedule", "add", "@daily", "x").code == 0
    assert "schedules already" in agentd("schedule", "add", "@daily", "x").err
