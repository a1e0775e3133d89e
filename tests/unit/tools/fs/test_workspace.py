"""workspace: one tool with actions over the same functions."""

import re
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import tool_of
from agentd.tools.fs.workspace import workspace as workspace_tool


@pytest.mark.requirement("S3-14")
def test_the_four_actions(folder: Path, workspace: Workspace) -> None:
    made = workspace_tool(workspace, "write", "notes/todo.md", "Buy groceries\n")
    assert made.content == "Created notes/todo.md (14 bytes)."
    assert workspace_tool(workspace, "read", "notes/todo.md").content == "Buy groceries"
    assert workspace_tool(workspace, "list").content == "dir   0 notes"
    assert workspace_tool(workspace, "list", "notes").content == "file  14 notes/todo.md"
    assert workspace_tool(workspace, "delete", "notes/todo.md").content == "Deleted notes/todo.md."
    assert list((folder / "notes").iterdir()) == []


@pytest.mark.requirement("S3-14")
def test_a_delete_that_is_repeated_does_not_claim_to_have_deleted(
    folder: Path, workspace: Workspace
) -> None:
    (folder / "a").write_text("x")
    workspace_tool(workspace, "delete", "a")
    assert "There is no a: it was deleted before, or never was" in (
        workspace_tool(workspace, "delete", "a").content
    )


def test_delete_takes_the_link_and_not_what_it_leads_to(folder: Path, workspace: Workspace) -> None:
    (folder / "real").write_text("x")
    (folder / "link").symlink_to("real")
    (folder / "dangling").symlink_to("/etc/passwd")
    workspace_tool(workspace, "delete", "link")
    workspace_tool(workspace, "delete", "dangling")
    assert [path.name for path in folder.iterdir()] == ["real"]


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "a/../b", "/etc/passwd", "{folder}/a"])
@pytest.mark.parametrize("action", ["read", "write", "list", "delete"])
def test_paths_are_relative_and_never_go_up(
    action: str, path: str, folder: Path, workspace: Workspace
) -> None:
    (folder / "a").write_text("x")
    with pytest.raises(ToolError) as caught:
        workspace_tool(workspace, action, path.format(folder=folder), "text")  # pyright: ignore[reportArgumentType]
    assert caught.value.error_type == "outside_workspace"
    assert [each.name for each in folder.iterdir()] == ["a"]


@pytest.mark.requirement("S3-15")
def test_without_its_folder_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        workspace_tool(Workspace(tmp_path / "gone"), "list")
    assert caught.value.error_type == "no_workspace"


@pytest.mark.parametrize(
    ("action", "path"), [("read", None), ("delete", None), ("write", None), ("write", "a")]
)
def test_what_an_action_needs_is_named(action: str, path: str | None, workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=f"{action} needs (path|content)"):
        workspace_tool(workspace, action, path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ToolError, match="is a folder"):
        workspace_tool(workspace, "delete", ".")


@pytest.mark.requirement("S3-14")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("/workspace list", ("list", None, None)),
        ("/workspace read notes/idea.md", ("read", "notes/idea.md", None)),
        (
            '/workspace write notes/todo.md "Buy groceries"',
            ("write", "notes/todo.md", "Buy groceries"),
        ),
        ("/workspace write a one\ntwo", ("write", "a", "one\ntwo")),
        ("/workspace delete notes/old.md ", ("delete", "notes/old.md", None)),
    ],
)
def test_the_slash_command(said: str, meant: tuple[str | None, ...]) -> None:
    made = tool_of(workspace_tool)
    assert made is not None
    assert made.slash is not None
    found = re.fullmatch(made.slash, said)
    assert found is not None
    assert (found["action"], found["path"], found["content"]) == meant
