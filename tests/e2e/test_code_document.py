"""The commands and the example of docs/code.md work as they stand there."""

import re
from pathlib import Path

import pytest

from tests.desk import desk
from tests.e2e.test_documents import blocks
from tests.messages_turns import DONE, call
from tests.processes import new_home

_DOCUMENT = "docs/code.md"


async def test_the_commands_of_the_guide_to_code(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    lines = re.findall(r"^agentd .*$", "".join(blocks(_DOCUMENT, "sh")), flags=re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        done = await home.run(*line.partition(" > ")[0].split()[1:])
        assert (done.code, done.err) == (0, "")
        assert "create_task" in done.out


@pytest.mark.requirement("S1-20")
async def test_the_example_of_the_guide_to_code(tmp_path: Path) -> None:
    (code,) = blocks(_DOCUMENT, "python")
    async with desk(tmp_path, call("execute_code", code=code), DONE) as here:
        notes = here.workspace / "notes"
        notes.mkdir(parents=True)
        (notes / "a.md").write_text("TODO one\nTODO two\n")
        (notes / "b.md").write_text("nothing\n")
        task = await here.work()
        (result, *_) = [r for r in await here.results(task) if r["tool"] == "execute_code"]
        assert not result["is_error"], result["content"]
        assert result["data"]["value"] == {"notes/a.md": 2, "notes/b.md": 0}, result
