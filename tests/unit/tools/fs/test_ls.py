"""ls."""

from pathlib import Path

import pytest

from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.ls import ls


@pytest.mark.requirement("S2-19")
def test_entries_with_type_and_size(folder: Path, workspace: Workspace) -> None:
    (folder / "b.txt").write_text("12345")
    (folder / "a").mkdir()
    (folder / "a" / "inner.txt").write_text("1")
    found = ls(workspace, ".")
    assert [(each.path, each.type, each.size) for each in found.entries] == [
        ("a", "dir", 0),
        ("b.txt", "file", 5),
    ]
    assert found.content == "dir   0 a\nfile  5 b.txt"
    assert [each.path for each in ls(workspace, ".", depth=2).entries] == [
        "a",
        "a/inner.txt",
        "b.txt",
    ]


def test_an_empty_folder_says_so(workspace: Workspace) -> None:
    assert ls(workspace, ".").content == "(the folder is empty)"


def test_a_crowded_folder_is_cut_and_says_so(folder: Path, workspace: Workspace) -> None:
    for number in range(1005):
        (folder / f"{number:04}").touch()
    found = ls(workspace, ".")
    assert (len(found.entries), found.more) == (1000, 5)
    assert found.content.endswith(
        "[5 more entries are not shown; list a folder below, or less depth]"
    )
