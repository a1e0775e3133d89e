"""The care of a database on which a daemon works: nothing is lost and nobody has to stop."""

import json
import signal
from pathlib import Path

import anyio
import pytest

from tests.processes import Home, new_home

_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "done.toml").write_text(_DONE)
    return new_home(tmp_path, AGENT__MODEL=f"scripted:{tmp_path / 'done.toml'}")


async def states(home: Home) -> dict[str, int]:
    sql = "SELECT state, count(*) AS tasks FROM tasks GROUP BY state"
    done = await home.run("sql", "--json", sql)
    assert done.code == 0, done.err
    return {row["state"]: row["tasks"] for row in json.loads(done.out)}


@pytest.mark.timeout(90)
async def test_a_daemon_works_on_while_its_database_is_cared_for(home: Home) -> None:
    path = home.path / "agentd.duckdb"
    async with home.daemon() as daemon:
        inodes: set[int] = set()
        for number in range(2):
            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(home.enqueue, f"task {number}")
                for command in (("compact",), ("backup", str(home.path / f"b{number}.duckdb"))):
                    done = await home.run("db", *command)
                    assert done.code == 0, done.err
            inodes.add(path.stat().st_ino)
        assert len(inodes) > 1
        last = await home.enqueue("the last")
        watched = await home.run("task", "watch", last)
        assert watched.code == 0, watched.err
        checked = await home.run("db", "check", "--json")
        assert json.loads(checked.out)["findings"] == []
        refused = await home.run("db", "restore", str(home.path / "b0.duckdb"))
        assert (refused.code, "Stop them first" in refused.err) == (1, True)
        with anyio.fail_after(20):
            while True:
                if await states(home) == {"completed": 5}:
                    break
        daemon.signal(signal.SIGTERM)
        assert await daemon.ended() == 0
        assert not [line for line in daemon.lines if line.get("level") == "error"]
    restored = await home.run("db", "restore", str(home.path / "b0.duckdb"))
    assert restored.code == 0, restored.err
    done = await home.run("run", "--drain")
    assert done.code == 0, done.err
    assert set(await states(home)) == {"completed"}
    assert (await home.run("db", "check")).code == 0
