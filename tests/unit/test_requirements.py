"""Every due promise has a test, and every test names a promise that there is."""

from pathlib import Path

from tests.requirements import REQUIREMENTS, Mark, Requirement, marked, marks, problems

SEEDS = {"S0": 42, "S1": 22, "S2": 40, "S3": 30, "S4": 29}
_TWO = {
    "S9-01": Requirement("S9-01", "here", "it flies", due=True),
    "S9-02": Requirement("S9-02", "here", "it swims", due=False),
}


def test_no_due_promise_is_without_a_test_and_no_test_names_an_unknown_one() -> None:
    found = problems(marks(), REQUIREMENTS)
    assert not found, "\n".join(found)


def test_the_whole_inventory_is_there() -> None:
    counts = {seed: sum(name.startswith(seed) for name in REQUIREMENTS) for seed in SEEDS}
    assert counts == SEEDS


def test_a_due_id_without_a_test_is_a_problem() -> None:
    assert problems([], _TWO) == ["S9-01 is due and no test shows it: it flies"]
    assert not problems([Mark("S9-01", "a.py:1")], _TWO)


def test_an_unknown_id_is_a_problem_with_its_place() -> None:
    found = problems([Mark("S9-01", "a.py:1"), Mark("S7-77", "b.py:3")], _TWO)
    assert found == ["b.py:3: S7-77 is no id"]


def test_marks_are_found_on_functions_coroutines_and_classes() -> None:
    source = (
        "import pytest\n"
        "@pytest.mark.requirement('A', 'B')\n"
        "def test_one(): ...\n"
        "@pytest.mark.requirement('C')\n"
        "class TestTwo:\n"
        "    @pytest.mark.requirement('D')\n"
        "    async def test_three(self): ...\n"
        "@pytest.mark.parametrize('x', ['E'])\n"
        "def test_four(x): ...\n"
    )
    assert _found(source) == {("A", "f.py:2"), ("B", "f.py:2"), ("C", "f.py:4"), ("D", "f.py:6")}


def test_marks_are_found_on_modules_and_on_single_parameters() -> None:
    source = (
        "pytestmark = [pytest.mark.slow, pytest.mark.requirement('A')]\n"
        "class TestOne:\n"
        "    pytestmark = pytest.mark.requirement('B')\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.requirement('C'))])\n"
        "def test_two(x): ...\n"
    )
    assert _found(source) == {("A", "f.py:1"), ("B", "f.py:3"), ("C", "f.py:4")}


def test_a_mark_on_what_is_no_test_shows_nothing() -> None:
    source = (
        "@pytest.mark.requirement('A')\n"
        "def prepare(): ...\n"
        "@pytest.mark.requirement('B')\n"
        "class Desk: ...\n"
        "'pytest.mark.requirement(\"C\")'\n"
    )
    assert not _found(source)


def test_an_id_that_is_not_written_out_is_a_problem() -> None:
    source = "@pytest.mark.requirement('S9-01', *MORE)\ndef test_one(): ...\n"
    assert problems(marked(source, "f.py"), _TWO) == ["f.py:1: *MORE is no id"]


def test_marks_of_a_folder_name_the_file_and_the_line(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    (folder / "room").mkdir(parents=True)
    text = "\n@pytest.mark.requirement('S7-77')\ndef test_one(): ...\n"
    (folder / "room" / "test_a.py").write_text(text, encoding="utf-8")
    (folder / "room" / "desk.py").write_text(text, encoding="utf-8")
    assert marks(folder) == [Mark("S7-77", "tests/room/test_a.py:2")]


def _found(source: str) -> set[tuple[str, str]]:
    return {(mark.id, mark.place) for mark in marked(source, "f.py")}
