"""The kill matrix: each class of effect, killed at each boundary of a call, then restarted.

The daemon is a real process that kills itself with SIGKILL. Where, a file in the home's `tools/`
says: it is loaded into the daemon and wraps the steps of a call. Effects are counted outside.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.ids import TaskId
from agentd.domain.task import NewTask, TaskState
from agentd.store.tasks import TaskStore
from tests.processes import Home, new_home

EFFECTS = ("read", "idempotent", "transactional", "reconcilable", "external")
BOUNDARIES = {
    "before_intent": "before the intent",
    "after_intent": "after the intent",
    "during": "during the effect",
    "after_effect": "after the effect",
    "after_result": "after the result, not stored",
    "before_commit": "at the commit, before it",
    "after_commit": "at the commit, after it",
}
TOOLS = '''
import os, signal
from datetime import timedelta
from pathlib import Path
from agentd.agent.dispatch import Dispatch
from agentd.config import Config
from agentd.domain.clock import Clock
from agentd.domain.run import CallKey
from agentd.domain.task import NewTask
from agentd.store.events import EventStore
from agentd.store.hub import Hub
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import tool

WORLD = Path(os.environ["KILL_WORLD"])
BOUNDARY = os.environ["KILL_AT"]
storing = None  # the probe whose result is on its way into the database

def die_at(boundary, probe):
    marker = WORLD / f"{probe}-died"
    if boundary == BOUNDARY and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def wrap(owner, name, before):
    original = getattr(owner, name)
    def wrapped(self, *arguments, **named):
        before(arguments)
        return original(self, *arguments, **named)
    setattr(owner, name, wrapped)

def die_if_probe(boundary, call):
    if call.name.endswith("_probe"):
        die_at(boundary, call.name)

def note_result(arguments):
    global storing
    results = [event.body["tool"] for event in arguments[1] if str(event.kind) == "tool_result"]
    storing = next((name for name in results if name.endswith("_probe")), None)

wrap(Dispatch, "run", lambda a: [die_if_probe("before_intent", call) for call in a[0]])
wrap(Dispatch, "_invoke", lambda a: die_if_probe("after_intent", a[0]))
wrap(Dispatch, "result_event", lambda a: die_if_probe("after_result", a[0]))
wrap(EventStore, "append", note_result)
commit = Hub.commit

def committing(hub):
    if storing:
        die_at("before_commit", storing)
    commit(hub)
    if storing:
        die_at("after_commit", storing)

Hub.commit = committing

def work(probe, key=""):
    die_at("during", probe)
    with open(WORLD / f"{probe}{key}", "w" if key else "a") as file:
        file.write("x")
    die_at("after_effect", probe)
    return "did it"

@tool(group="probe", effect="read")
def read_probe() -> str:
    """Probe."""
    return work("read_probe")

@tool(group="probe", effect="idempotent")
def idempotent_probe(key: CallKey) -> str:
    """Probe."""
    return work("idempotent_probe", "-" + key.text.replace("/", "-"))

@tool(group="probe", effect="external")
def external_probe() -> str:
    """Probe."""
    return work("external_probe")

def happened() -> str | None:
    return "it had happened" if (WORLD / "reconcilable_probe").exists() else None

@tool(group="probe", effect="reconcilable", reconcile=happened)
def reconcilable_probe() -> str:
    """Probe."""
    return work("reconcilable_probe")

@tool(group="probe", effect="transactional")
async def transactional_probe(clock: Clock, tasks: TaskStore) -> str:
    """Probe."""
    die_at("during", "transactional_probe")
    later = clock.now() + timedelta(days=1)
    await tasks.enqueue(NewTask(prompt="the effect", not_before=later, enqueued_by="probe"))
    die_at("after_effect", "transactional_probe")
    return "did it"
'''
_SCRIPT = """
[[turn]]
[[turn.call]]
tool = "{tool}"

[[turn]]
[[turn.call]]
tool = "complete_task"
input = {{ summary = "${{result.1}}" }}
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """`killed`: a daemon died at the boundary. `effects`: how often the world saw the effect."""

    killed: bool
    state: TaskState
    effects: int
    told: str


async def kill_at(boundary: str, folder: Path) -> dict[str, Cell]:
    """For each class of effect: one task, a kill at the boundary of its call, and its end."""
    world = folder / "world"
    world.mkdir()
    home = new_home(folder, DAEMON__CONCURRENCY="1", AGENT__MODEL="scripted:demo")
    at = {"KILL_AT": boundary, "KILL_WORLD": os.fspath(world)}
    home = Home(home.path, {**home.variables, **at})
    (home.path / "tools" / "probe.py").write_text(TOOLS)
    async with open_store(load_config(home.path)) as store:
        tasks = TaskStore(store, SystemClock())
        made = {effect: await _enqueue(tasks, effect, folder) for effect in EFFECTS}
        ends = [(await home.run("run", "--drain")).code for _ in range(len(EFFECTS) + 1)]
        assert ends == [-9] * len(EFFECTS) + [0], ends
        cells: dict[str, Cell] = {}
        for effect, task_id in made.items():
            task = await tasks.get(task_id)
            killed = (world / f"{effect}_probe-died").exists() and task.attempt == 2
            effects = len(list(world.glob(f"{effect}_probe-[!d]*")))
            if (world / f"{effect}_probe").exists():
                effects = len((world / f"{effect}_probe").read_text())
            cells[effect] = Cell(killed, task.state, effects, task.output or "")
        made_by_probe = [each for each in await tasks.list() if each.enqueued_by == "probe"]
    cells["transactional"] = replace(cells["transactional"], effects=len(made_by_probe))
    return cells


async def _enqueue(tasks: TaskStore, effect: str, folder: Path) -> TaskId:
    script = folder / f"{effect}.toml"
    script.write_text(_SCRIPT.format(tool=f"{effect}_probe"))
    return (await tasks.enqueue(NewTask("Probe.", model=f"scripted:{script}"))).task.id


def keeps_its_promise(effect: str, cell: Cell) -> bool:
    """What the class of effect promises, whatever the boundary."""
    if not (cell.killed and cell.state is TaskState.COMPLETED):
        return False
    match effect:
        case "read":
            return cell.told.endswith("did it")
        case "external":
            unknown = "outcome_unknown" in cell.told
            return cell.effects <= 1 and (unknown or (cell.effects == 1 and "did it" in cell.told))
        case _:
            return cell.effects == 1
