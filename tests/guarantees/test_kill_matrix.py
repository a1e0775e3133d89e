"""kill -9 at every boundary of a call, for every class of effect: docs/reliability.md."""

from pathlib import Path

import pytest

from tests.kill_matrix import BOUNDARIES, keeps_its_promise, kill_at


@pytest.mark.timeout(60)
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_each_effect_happens_as_often_as_its_class_promises(
    boundary: str, tmp_path: Path
) -> None:
    cells = await kill_at(boundary, tmp_path)
    assert {
        effect: cell for effect, cell in cells.items() if not keeps_its_promise(effect, cell)
    } == {}
