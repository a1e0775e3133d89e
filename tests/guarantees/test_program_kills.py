"""kill -9 inside a program of the model: it goes on at the call, and no effect comes twice."""

from pathlib import Path

import pytest

from agentd.domain.task import TaskState
from agentd.sandbox.code.typescript import find_deno
from tests.program_kills import keeps_its_promise, killed_at


@pytest.mark.timeout(60)
@pytest.mark.parametrize("boundary", ["after_effect"])
async def test_a_program_goes_on_at_the_call_in_which_it_was_killed(
    boundary: str, tmp_path: Path
) -> None:
    task, outcomes = await killed_at(boundary, "python", tmp_path)
    assert task.state is TaskState.COMPLETED
    assert {
        effect: each for effect, each in outcomes.items() if not keeps_its_promise(effect, each)
    } == {}


@pytest.mark.skipif(find_deno() is None, reason="deno is not installed (extra: deno)")
@pytest.mark.timeout(60)
async def test_a_program_without_snapshots_runs_again_and_repeats_nothing(tmp_path: Path) -> None:
    task, outcomes = await killed_at("before_commit", "typescript", tmp_path)
    assert task.state is TaskState.COMPLETED
    assert {
        effect: each for effect, each in outcomes.items() if not keeps_its_promise(effect, each)
    } == {}
