"""The hand-written commands: enqueue, task, session, daemon, run."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Agentd

pytestmark = pytest.mark.usefixtures("home")


def enqueue(agentd: Agentd, *arguments: str) -> str:
    done = agentd("enqueue", *arguments)
    assert done.code == 0, done.err
    return done.out.strip()


def drain(*options: str) -> None:
    """In a process of its own: it sets up the logging of the whole process."""
    subprocess.run(
        [sys.executable, "-m", "agentd", "run", "--drain", *options],
        check=True,
        capture_output=True,
    )


def test_a_task_through_its_life(agentd: Agentd) -> None:
    task_id = enqueue(agentd, "Do it.", "--title", "It", "--priority", "high")
    assert agentd("task", "list").out.splitlines()[1].split()[:3] == [
        task_id[-8:],
        "pending",
        "high",
    ]
    assert agentd("task", "cancel", task_id[-8:]).out.strip() == f"{task_id} cancelled"
    again = agentd("task", "cancel", task_id)
    assert (again.code, again.out) == (1, "")
    assert "is cancelled already" in again.err
    assert agentd("task", "retry", task_id, "--json").json["state"] == "pending"
    assert agentd("task", "resume", task_id).code == 1
    view = agentd("task", "view", task_id)
    assert "Do it." in view.out
    assert agentd("task", "view", task_id, "--json").json["title"] == "It"
    assert agentd("task", "delete", task_id).code == 0
    assert agentd("task", "view", task_id).code == 1
    assert agentd("task", "list").err.strip() == "No tasks."


def test_run_works_the_queue_with_the_model_that_is_asked_for(agentd: Agentd, home: Path) -> None:
    (home / "workspace" / "notes").mkdir()
    for name in ("meeting.md", "todo.md"):
        (home / "workspace" / "notes" / name).write_text(f"# {name}\n")
    task_id = enqueue(agentd, "Report.")
    drain("--model", "scripted:demo", "--concurrency", "2")
    assert agentd("task", "view", task_id, "--json").json["state"] == "completed"
    assert "meeting.md" in (home / "workspace" / "report.md").read_text()
    history = agentd("session", "history", task_id)
    assert "→ write(" in history.out
    lines = agentd("session", "history", task_id, "--json", "--limit", "3").out.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["assistant", "tool_call", "tool_result"]
    watched = agentd("task", "watch", task_id)
    assert (watched.code, watched.out.splitlines()[-2]) == (0, f"{task_id} completed")
    spent = agentd("task", "view", task_id, "--json").json["spent"]
    assert spent["calls"] == 4


def test_enqueue_takes_everything_that_a_task_can_be_given(agentd: Agentd) -> None:
    first = enqueue(agentd, "First.")
    done = agentd(
        *("enqueue", "Second.", "--after", first[-8:], "--session", "main", "--at", "2d"),
        *("--key", "k", "--model", "scripted:demo", "--max-iterations", "7", "--deadline", "60"),
        *("--max-attempts", "5", "--max-cost", "0.25", "--max-total-tokens", "9000"),
        "--json",
    )
    task = done.json["task"]
    assert done.json["created"] is True
    assert (task["after"], task["session_id"], task["key"]) == ([first], "main", "k")
    assert (task["model"], task["limits"]) == (
        "scripted:demo",
        {
            "max_tool_iterations": 7,
            "deadline_s": 60.0,
            "max_attempts": 5,
            "max_cost_microusd": 250_000,
            "max_total_tokens": 9000,
        },
    )
    again = agentd("enqueue", "Third.", "--key", "k")
    assert again.out.strip() == task["id"]
    assert "is taken" in again.err


def test_enqueue_reads_its_prompt_from_standard_input(
    agentd: Agentd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("A long\nprompt.\n"))
    task_id = enqueue(agentd, "-")
    assert agentd("task", "view", task_id, "--json").json["prompt"] == "A long\nprompt.\n"


def test_a_successor_may_accept_a_failed_predecessor(agentd: Agentd) -> None:
    first = enqueue(agentd, "First.")
    agentd("task", "cancel", first)
    refused = agentd("enqueue", "Then.", "--after", first)
    assert refused.code == 1
    assert "--after-any" in refused.err
    assert enqueue(agentd, "Then.", "--after", first, "--after-any")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("enqueue", ""), 2, "PROMPT is empty"),
        (("enqueue",), 2, "Missing argument"),
        (("enqueue", "x", "--at", "whenever"), 2, "--at"),
        (("enqueue", "x", "--priority", "urgent"), 2, "'high', 'medium', 'low'"),
        (("enqueue", "x", "--after", "nobody"), 1, "nobody"),
        (("task", "view", "nobody"), 1, "no task 'nobody'"),
        (("task", "nonsense"), 2, "No such command"),
        (("nonsense",), 2, "No such command"),
        (("session", "history", "nobody"), 1, "nobody"),
        (("session", "send", "nobody", "hi"), 1, "nobody"),
        (("run", "--drain", "--once"), 2, "exclude each other"),
        (("run", "--drain", "--model", "gpt"), 2, "PROVIDER:NAME"),
        (("enqueue", "x", "--model", "gpt"), 2, "PROVIDER:NAME"),
        (("enqueue", "x", "--deadline", "nan"), 2, "--deadline"),
        (("enqueue", "x", "--at", "9500-01-01"), 2, "years"),
        (("enqueue", "x", "--after-any"), 2, "--after"),
        (("session", "send", "main", ""), 2, "empty"),
        (("task", "view", "01a"), 1, "4 characters"),
        (("config", "no.such.key"), 2, "no setting"),
        (("tools", "call", "lss", "{}"), 2, "Did you mean ls"),
        (("tools", "call", "ls", "{"), 2, "no valid JSON"),
        (("completion", "tcsh"), 2, "'bash', 'zsh', 'fish'"),
    ],
)
def test_wrong_usage_is_2_a_failure_is_1_and_both_say_why(
    arguments: tuple[str, ...], code: int, says: str, agentd: Agentd
) -> None:
    done = agentd(*arguments)
    assert done.code == code
    assert says in done.err
    assert not done.out


def test_a_daemon_whose_model_can_not_be_opened_does_not_start() -> None:
    command = [sys.executable, "-m", "agentd", "run", "--model", "scripted:/nowhere.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "/nowhere.toml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_is_found_wherever_the_daemon_was_started(
    agentd: Agentd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text("[[turn]]\ntext = 'hello'\n")
    monkeypatch.chdir(tmp_path)
    task_id = enqueue(agentd, "x", "--model", "scripted:own.toml")
    shown = agentd("task", "view", task_id, "--json").json
    assert shown["model"] == f"scripted:{tmp_path / 'own.toml'}"
    (tmp_path / "demo").touch()
    task_id = enqueue(agentd, "x", "--model", "scripted:demo")
    assert agentd("task", "view", task_id, "--json").json["model"] == "scripted:demo"


def test_what_the_model_writes_does_not_steer_the_terminal(agentd: Agentd) -> None:
    task_id = enqueue(agentd, "x \x1b]0;own\x07 y", "--title", "t \x1b[8m")
    for shown in (agentd("task", "view", task_id).out, agentd("task", "list").out):
        assert "\x1b" not in shown
        assert "␛" in shown
    assert agentd("task", "view", task_id, "--json").json["prompt"].count("\x1b") == 1
    assert "no\u241b[2J" in agentd("--home", "/no\x1b[2J", "task", "list").err


def test_sessions_are_listed_and_spoken_to(agentd: Agentd) -> None:
    assert "No sessions" in agentd("session", "list").err
    enqueue(agentd, "x", "--session", "main")
    assert agentd("session", "list", "--json").json[0]["id"] == "main"
    assert agentd("session", "send", "main", "Hello.").out.strip() == "said to main"
    assert "No events yet" in agentd("session", "history", "main").err


def test_daemons_are_listed_and_none_is_a_failure(agentd: Agentd) -> None:
    done = agentd("daemon", "list")
    assert done.code == 1
    assert "agentd run" in done.err
    drain()
    assert agentd("daemon", "list", "--all", "--json").json[0]["state"] == "stopped"


def test_lists_can_be_filtered_and_paged(agentd: Agentd) -> None:
    ids = [enqueue(agentd, f"Task {number}.") for number in range(3)]
    agentd("task", "cancel", ids[0])
    assert len(agentd("task", "list", "--json", "--state", "pending").json) == 2
    (second,) = agentd("task", "list", "--json", "--limit", "1", "--offset", "1").json
    assert second["id"] == ids[2]
    assert agentd("task", "list", "--session", ids[1], "--json").json[0]["id"] == ids[1]


def test_watching_an_ended_task_shows_it_and_fails_unless_it_is_completed(agentd: Agentd) -> None:
    task_id = enqueue(agentd, "x")
    agentd("task", "cancel", task_id)
    done = agentd("task", "watch", task_id)
    assert done.code == 1
    assert "cancelled" in done.out
    last = agentd("task", "watch", task_id, "--json").out.splitlines()[-1]
    assert json.loads(last)["task"]["state"] == "cancelled"
