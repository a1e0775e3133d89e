"""kill -9 inside one program that makes ten calls, two of each class of effect.

The daemon dies in the first call of each class, at one boundary; so it is started six times, and
the same program comes to its end. The probes are those of the kill matrix.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.ids import TaskId
from agentd.domain.task import NewTask, Task
from agentd.store.tasks import TaskStore
from tests.kill_matrix import EFFECTS, TOOLS
from tests.processes import Home, new_home

PYTHON = """
out = []
for probe in [{probes}] * 2:
    try:
        out.append(await probe())
    except RuntimeError as error:
        out.append(str(error).partition(":")[0])
out
"""
TYPESCRIPT = """
const out: string[] = [];
for (const probe of [{probes}, {probes}]) {{
    try {{
        out.push(await probe({{}}));
    }} catch (error) {{
        out.push(String(error.message).split(":")[0]);
    }}
}}
return out;
"""
_SCRIPT = """
[[turn]]
[[turn.call]]
tool = "execute_code"
input = {{ code = {code}, language = "{language}" }}

[[turn]]
[[turn.call]]
tool = "complete_task"
input = {{ summary = "${{result.1}}" }}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of the two calls of one class. `effects`: how often the world saw them."""

    killed: bool
    effects: int
    told: tuple[str, str]


async def killed_at(boundary: str, language: str, folder: Path) -> tuple[Task, dict[str, Outcome]]:
    """The task as it ended, and what came of each class of effect."""
    world = folder / "world"
    world.mkdir()
    patient = {"AGENT__MAX_ATTEMPTS": "20", "AGENT__ATTEMPT_BASE_SECONDS": "0"}
    home = new_home(folder, AGENT__MODEL="scripted:demo", **patient)
    at = {"KILL_AT": boundary, "KILL_WORLD": os.fspath(world)}
    home = Home(home.path, {**home.variables, **at})
    (home.path / "tools" / "probe.py").write_text(TOOLS)
    async with open_store(load_config(home.path)) as store:
        tasks = TaskStore(store, SystemClock())
        task_id = await _enqueue(tasks, language, folder)
        ends = [(await home.run("run", "--drain")).code for _ in range(len(EFFECTS) + 1)]
        assert ends == [-9] * len(EFFECTS) + [0], ends
        task = await tasks.get(task_id)
        made_by_probe = [each for each in await tasks.list() if each.enqueued_by == "probe"]
    told = json.loads(task.output or "[]")
    assert len(told) == 2 * len(EFFECTS), (task.error, task.output)
    outcomes: dict[str, Outcome] = {}
    for place, effect in enumerate(EFFECTS):
        effects = sum(
            len(file.read_text())
            for file in world.glob(f"{effect}_probe*")
            if not file.name.endswith("-died")
        )
        if effect == "transactional":
            effects = len(made_by_probe)
        killed = (world / f"{effect}_probe-died").exists()
        outcomes[effect] = Outcome(killed, effects, (told[place], told[place + len(EFFECTS)]))
    return task, outcomes


def keeps_its_promise(effect: str, outcome: Outcome) -> bool:
    """What the class of effect promises, for a first call that was cut off and a second."""
    first, second = outcome.told
    if not outcome.killed or second != "did it":
        return False
    match effect:
        case "read":
            return first == "did it"
        case "external":
            unknown = first == "outcome_unknown" and outcome.effects <= 2
            return unknown or (first == "did it" and outcome.effects == 2)
        case "reconcilable":
            return first in {"did it", "it had happened"} and outcome.effects == 2
        case _:
            return first == "did it" and outcome.effects == 2


async def _enqueue(tasks: TaskStore, language: str, folder: Path) -> TaskId:
    script = folder / "program.toml"
    template = PYTHON if language == "python" else TYPESCRIPT
    code = template.format(probes=", ".join(f"{effect}_probe" for effect in EFFECTS))
    script.write_text(_SCRIPT.format(code=json.dumps(code), language=language))
    return (await tasks.enqueue(NewTask("Probe.", model=f"scripted:{script}"))).task.id
