"""Every occurrence is accounted for, and none runs twice, wherever daemons die."""

import random
import signal
from datetime import timedelta
from pathlib import Path

import anyio

from agentd.cli.context import open_store
from agentd.config import load_config
from agentd.domain.clock import SystemClock
from agentd.domain.schedule import Missed, NewSchedule, Outcome
from agentd.schedules.scheduling import Scheduling
from agentd.store.schedules import ScheduleStore
from agentd.store.tasks import TaskStore
from tests.processes import Home, new_home

_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_KILLS = 4


async def test_two_daemons_that_are_killed_fire_each_occurrence_once(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    script = tmp_path / "script.toml"
    script.write_text(_DONE)
    home = new_home(
        tmp_path, AGENT__MODEL=f"scripted:{script}", SCHEDULES__MIN_INTERVAL_SECONDS="1"
    )
    config = load_config(home.path, {"schedules.min_interval_seconds": 1})
    async with open_store(config) as store:
        scheduling = Scheduling(store, SystemClock(), config.schedules)
        for missed in Missed:
            await scheduling.add(NewSchedule("every 1s", f"{missed}", missed=missed))
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(_kill_again_and_again, home, dice)
        schedules, tasks = ScheduleStore(store, SystemClock()), TaskStore(store, SystemClock())
        enqueued = {task.id for task in await tasks.list(limit=10_000)}
        fired: list[str] = []
        for each in await schedules.list():
            lines = (await schedules.ledger(each.id, limit=10_000))[::-1]
            due = each.created_at.replace(microsecond=0) + timedelta(seconds=1)
            for line in lines:
                assert line.occurrence.due_at == due, f"seed {seed}, {each.prompt}"
                due += timedelta(seconds=line.occurrence.times)
                if line.occurrence.outcome is Outcome.FIRED:
                    fired.append(str(line.task_id))
            assert due == each.next_due, f"seed {seed}, {each.prompt}"
            assert len(lines) > _KILLS
    assert sorted(fired) == sorted(enqueued), f"seed {seed}"


async def _kill_again_and_again(home: Home, dice: random.Random) -> None:
    for _ in range(_KILLS):
        async with home.daemon() as daemon:
            await daemon.logged("occurrence")
            await anyio.sleep(dice.uniform(0, 0.5))
            daemon.signal(signal.SIGKILL)
            await daemon.ended()
