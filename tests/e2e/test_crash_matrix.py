"""kill -9 in the middle of a tool call, before and after its effect, for every class of effect."""

from pathlib import Path

import pytest

from tests.processes import Home, new_home

_TOOLS = '''
import os, signal
from datetime import timedelta
from typing import Annotated
from pydantic import Field
from agentd.config import Config
from agentd.domain.clock import Clock
from agentd.domain.task import NewTask
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import tool

When = Annotated[str, Field(description="When to die: before or after the effect.")]

def effect(config):
    with open(config.workspace_path / "effects", "a") as file:
        file.write("x")

def die(config, now, when):
    marker = config.workspace_path / "died"
    if now == when and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def work(config, when):
    die(config, "before", when)
    effect(config)
    die(config, "after", when)
    return "did it"

@tool(group="probe", effect="read")
def read_probe(config: Config, when: When) -> str:
    """Probe."""
    return work(config, when)

@tool(group="probe", effect="idempotent")
def idempotent_probe(config: Config, when: When) -> str:
    """Probe."""
    return work(config, when)

@tool(group="probe", effect="external")
def external_probe(config: Config, when: When) -> str:
    """Probe."""
    return work(config, when)

async def happened(config: Config, when: str) -> str | None:
    return "it had happened" if (config.workspace_path / "effects").exists() else None

@tool(group="probe", effect="reconcilable", reconcile=happened)
def reconcilable_probe(config: Config, when: When) -> str:
    """Probe."""
    return work(config, when)

@tool(group="probe", effect="transactional")
async def transactional_probe(
    config: Config, clock: Clock, tasks: TaskStore, when: When
) -> str:
    """Probe."""
    die(config, "before", when)
    later = clock.now() + timedelta(days=1)
    await tasks.enqueue(NewTask(prompt="the effect", not_before=later, enqueued_by="probe"))
    die(config, "after", when)
    return "did it"
'''

_SCRIPT = """
[[turn]]
[[turn.call]]
tool = "{tool}"
input = {{ when = "{when}" }}

[[turn]]
[[turn.call]]
tool = "complete_task"
input = {{ summary = "${{result.1}}" }}
"""


@pytest.mark.parametrize(
    ("effect", "when", "effects", "told"),
    [
        ("read", "before", 1, "did it"),
        ("read", "after", 2, "did it"),
        ("idempotent", "before", 1, "did it"),
        ("idempotent", "after", 2, "did it"),
        ("reconcilable", "before", 1, "did it"),
        ("reconcilable", "after", 1, "it had happened"),
        ("external", "before", 0, "outcome_unknown"),
        ("external", "after", 1, "outcome_unknown"),
        ("transactional", "before", 1, "did it"),
        ("transactional", "after", 1, "did it"),
    ],
)
async def test_what_a_crash_in_a_call_of_this_effect_means(
    effect: str, when: str, effects: int, told: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path)
    (home.path / "tools" / "probe.py").write_text(_TOOLS)
    script = tmp_path / "script.toml"
    script.write_text(_SCRIPT.format(tool=f"{effect}_probe", when=when))
    task_id = await home.enqueue("Probe.", "--model", f"scripted:{script}")

    assert (await home.run("run", "--drain")).code == -9
    assert (await home.task(task_id))["state"] == "running"
    assert (await home.run("run", "--drain")).code == 0

    task = await home.task(task_id)
    assert task["state"] == "completed"
    assert told in task["output"]
    assert task["attempt"] == 2
    assert await _effects(home, effect) == effects


async def _effects(home: Home, effect: str) -> int:
    if effect != "transactional":
        file = home.workspace / "effects"
        return len(file.read_text()) if file.exists() else 0
    return (await home.run("task", "list", "--json")).out.count('"the effect"')
