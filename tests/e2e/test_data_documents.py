"""What docs/data.md and docs/operating.md say works as it stands there."""

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.store.archives import TABLES
from agentd.store.asking import answer, reading
from agentd.store.queries import load
from agentd.store.store import Store
from tests.e2e.test_documents import blocks
from tests.processes import Home, new_home
from tests.store_filling import worked

_DATA = Path(__file__).parents[2] / "docs/data.md"


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    made = new_home(tmp_path)
    async with Store(made.path / "agentd.duckdb") as store:
        for day in (1, 2):
            await worked(store, datetime(2026, 1, day, tzinfo=UTC))
    return made


def test_every_question_is_answered(home: Home) -> None:
    questions = blocks("docs/data.md", "sql")
    assert len(questions) == 10
    where = {"folder": home.path / "run", "archive": home.path / "archive", "busy_s": 5}
    with reading(home.path / "agentd.duckdb", **where) as instance:
        for question in questions:
            found = answer(instance, question)
            assert found.names
            list(found.rows)


def test_every_table_and_view_is_described(home: Home) -> None:
    text = _DATA.read_text()
    where = {"folder": home.path / "run", "archive": home.path / "archive", "busy_s": 5}
    with reading(home.path / "agentd.duckdb", **where) as instance:
        shown = {str(name) for (name,) in answer(instance, "SHOW TABLES").rows}
    assert {f"all_{table}" for table in TABLES} | set(load("views")) <= shown
    assert not [name for name in shown if f"`{name}`" not in text]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("document", ["docs/data.md", "docs/operating.md"])
async def test_every_command_works(document: str, home: Home, tmp_path: Path) -> None:
    lines = [line for block in blocks(document, "sh") for line in block.splitlines()]
    assert len(lines) >= 4
    for line in lines:
        asked, _, command = line.rpartition(" | ")
        if asked:
            query = shlex.split(asked)[1]
            command = command.replace(" -", f" {shlex.quote(query)}")
        words = [str(tmp_path / "b.duckdb") if w == "BACKUP" else w for w in shlex.split(command)]
        assert words[0] == "agentd"
        done = await home.run(*words[1:])
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
    if document == "docs/data.md":
        done = await home.run("sql", "--json", "SELECT sum(cost_usd) AS dollars FROM cost_by_day")
        assert json.loads(done.out) == [{"dollars": 9.0}]
