"""write and write_file."""

from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import Effect, tool_of
from agentd.tools.fs.write import write


@pytest.mark.requirement("S2-12", "S4-05")
def test_folders_are_made_and_the_file_is_replaced(folder: Path, workspace: Workspace) -> None:
    first = write(workspace, "deep/er/a.txt", "höllo")
    assert (first.message, first.size, first.created) == (
        "Created deep/er/a.txt (6 bytes).",
        6,
        True,
    )
    second = write(workspace, "deep/er/a.txt", "")
    assert (second.message, second.created) == ("Replaced deep/er/a.txt (0 bytes).", False)
    assert (folder / "deep/er/a.txt").read_bytes() == b""


def test_what_is_no_text_writes_nothing(folder: Path, workspace: Workspace) -> None:
    with pytest.raises(ToolError) as caught:
        write(workspace, "a.txt", "half \ud83d")
    assert caught.value.error_type == "invalid_arguments"
    assert not (folder / "a.txt").exists()


@pytest.mark.requirement("S4-05")
def test_write_file_is_the_same_and_both_may_be_repeated() -> None:
    made = tool_of(write)
    assert made is not None
    assert [face.name for face in made.faces()] == ["write", "write_file"]
    assert {face.effect for face in made.faces()} == {Effect.IDEMPOTENT}
