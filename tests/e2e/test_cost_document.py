"""The commands and the settings of docs/cost.md work as they stand there."""

import shlex
from pathlib import Path

from tests.e2e.test_documents import blocks, commands
from tests.processes import new_home

_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_PRICE = (
    '\n[models.prices."scripted:"]\ninput = 1.0\noutput = 100.0\ncache_write = 1.0\n'
    "cache_read = 1.0\n"
)


async def test_the_commands_of_the_guide_to_cost(tmp_path: Path) -> None:
    script = tmp_path / "done.toml"
    script.write_text(_DONE)
    home = new_home(tmp_path, AGENT__MODEL=f"scripted:{script}")
    (settings,) = blocks("docs/cost.md", "toml")
    (home.path / "agentd.toml").write_text(settings + _PRICE)
    waiting = await home.enqueue("Something dear.")
    assert (await home.run("run", "--drain")).code == 0
    assert "task_usd is $0.5000" in (await home.task(waiting))["waiting_reason"]
    lines = commands("docs/cost.md")
    assert len(lines) == 8
    for line in lines:
        words = [waiting if word == "ID" else word for word in shlex.split(line)][1:]
        done = await home.run(*words)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
    (limits,) = [line for line in (await home.run("cost")).out.splitlines() if "day_usd" in line]
    assert limits.split()[1:] == ["$5.00", "$0.0000", "$0.0000", "$5.00"]
