"""Every due promise has a test, and every test names a promise that there is."""

from tests.requirements import REQUIREMENTS, Mark, Requirement, marks, marks_in, problems

SEEDS = {"S0": 42, "S1": 22, "S2": 40, "S3": 30, "S4": 29}
_TWO = {
    "S9-01": Requirement("S9-01", "here", "it flies", due=True),
    "S9-02": Requirement("S9-02", "here", "it swims", due=False),
}


def test_no_due_promise_is_without_a_test_and_no_test_names_an_unknown_one() -> None:
    assert not problems(marks(), REQUIREMENTS)


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
    found = {(mark.id, mark.place) for mark in marks_in(source, "f.py")}
    assert found == {("A", "f.py:2"), ("B", "f.py:2"), ("C", "f.py:4"), ("D", "f.py:6")}
