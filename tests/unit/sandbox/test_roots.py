"""Several roots: what may be written, how they are reached, and what is never entered."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A workspace beside a folder to read and one to write."""
    for name in ("work/inner", "data", "out", "other", "work/home/run"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.txt").write_text(name)
    (tmp_path / "work" / "to_data").symlink_to(tmp_path / "data")
    (tmp_path / "work" / "to_other").symlink_to(tmp_path / "other")
    (tmp_path / "data" / "back").symlink_to(tmp_path / "work")
    (tmp_path / "data" / "aside").symlink_to("../other")
    return tmp_path


@pytest.fixture
def workspace(base: Path) -> Workspace:
    roots = [Root(base / "data", writable=False), Root(base / "out")]
    return Workspace(base / "work", roots, hidden=[base / "work" / "home"])


def content(workspace: Workspace, path: Path | str) -> str:
    with workspace.open(str(path)) as file:
        return file.read().decode()


def kind(workspace: Workspace, path: Path | str, data: bytes | None = None) -> str:
    with pytest.raises(ToolError) as caught:
        workspace.write(str(path), data) if data is not None else content(workspace, path)
    return caught.value.error_type


@pytest.mark.requirement("S2-12", "C28")
def test_further_roots_are_reached_by_absolute_paths_and_links(
    base: Path, workspace: Workspace
) -> None:
    assert content(workspace, base / "data/file.txt") == "data"
    assert content(workspace, "to_data/file.txt") == "data"
    assert content(workspace, base / "data/back/inner/file.txt") == "work/inner"
    assert workspace.write(str(base / "out/new/x"), b"x").path == str(base / "out/new/x")
    assert [each.path for each in workspace.list(str(base / "out"))] == [
        str(base / "out/file.txt"),
        str(base / "out/new"),
    ]
    assert workspace.find("to_data/file.txt") == str(base / "data/file.txt")


@pytest.mark.requirement("C28")
@pytest.mark.parametrize("path", ["../data/file.txt", "to_other/file.txt", "{base}/other/file.txt"])
def test_what_is_in_no_root_is_outside(path: str, base: Path, workspace: Workspace) -> None:
    assert kind(workspace, path.format(base=base)) == "outside_workspace"
    assert kind(workspace, base / "data/../other/file.txt") == "outside_workspace"
    assert kind(workspace, base / "data/aside/file.txt") == "outside_workspace"
    with pytest.raises(ToolError) as caught:
        content(workspace, "/etc/passwd")
    assert str(base / "data") in (caught.value.next_action_hint or "")


def test_a_read_only_root_is_not_written(base: Path, workspace: Workspace) -> None:
    for path in (
        "to_data/file.txt",
        "to_data/new.txt",
        "to_data/a/b/c.txt",
        base / "data/file.txt",
    ):
        assert kind(workspace, path, b"x") == "read_only"
    for change in (
        lambda: workspace.delete("to_data/file.txt"),
        lambda: workspace.delete(str(base / "data/aside")),
        lambda: workspace.look("to_data/file.txt", most_bytes=100),
        lambda: workspace.look("to_data/new/deep.txt", most_bytes=100),
    ):
        with pytest.raises(ToolError) as caught:
            change()
        assert caught.value.error_type == "read_only"
    assert sorted(path.name for path in (base / "data").iterdir()) == ["aside", "back", "file.txt"]


def test_a_root_in_a_root_has_its_own_rights(base: Path) -> None:
    workspace = Workspace(base / "work", [Root(base / "work" / "inner", writable=False)])
    assert kind(workspace, "inner/file.txt", b"x") == "read_only"
    assert kind(workspace, "./home/../inner/new", b"x") == "read_only"
    assert kind(workspace, base / "work/inner/file.txt", b"x") == "read_only"
    assert workspace.write("file.txt", b"x").path == "file.txt"
    other = Workspace(base / "data", [Root(base), Root(base / "work", writable=False)])
    assert kind(other, base / "work/file.txt", b"x") == "read_only"
    assert other.write(str(base / "other/file.txt"), b"x").size == 1


def test_a_hidden_folder_does_not_exist_for_tools(base: Path, workspace: Workspace) -> None:
    (base / "work" / "way").symlink_to("home/run")
    for path in ("home/file.txt", "home/run/file.txt", "inner/../home/file.txt", "way/file.txt"):
        assert kind(workspace, path) == "outside_workspace"
        assert kind(workspace, path, b"x") == "outside_workspace"
    with pytest.raises(ToolError):
        workspace.list("home")
    with pytest.raises(ToolError):
        workspace.find("home")
    assert not [each for each in workspace.list(".", depth=5) if each.path.startswith("home")]
    moved = base / "work" / "moved"
    (base / "work" / "home").rename(moved)  # hidden is the folder that the path leads to now
    (base / "work" / "home").symlink_to("moved")
    again = Workspace(base / "work", hidden=[base / "work" / "home"])
    assert kind(again, "moved/file.txt") == "outside_workspace"


def test_a_write_through_a_hard_link_does_not_change_the_other_file(
    base: Path, workspace: Workspace
) -> None:
    os.link(base / "other" / "file.txt", base / "work" / "hard.txt")
    workspace.write("hard.txt", b"new")
    assert (base / "other" / "file.txt").read_text() == "other"
    assert content(workspace, "hard.txt") == "new"


# The folder and a link to the outside change places in one step: no moment without the name.
_SWAPPER = """
import ctypes, os, sys
exchange = ctypes.CDLL(None).renameat2
name, beside = map(os.fsencode, sys.argv[1:])
while True:
    assert exchange(-100, name, -100, beside, 2) == 0
"""


@pytest.mark.timeout(60)
def test_a_folder_that_another_process_swaps_for_a_link_leads_nowhere(base: Path) -> None:
    """It is a folder at one moment and a link to the outside at the next, thousands of times."""
    workspace = Workspace(base / "work")
    (base / "work" / "beside").symlink_to(base / "other")
    arguments = [str(base / "work" / "inner"), str(base / "work" / "beside")]
    seen: set[str] = set()
    refused: list[str] = []
    raced = {"changed_meanwhile", "not_a_folder"}  # between the check and the use
    with subprocess.Popen([sys.executable, "-c", _SWAPPER, *arguments]) as process:
        try:
            while not seen or len(refused) < 2000 or not {*refused} & raced:
                assert process.poll() is None
                try:
                    seen.add(content(workspace, "inner/file.txt"))
                    workspace.write("inner/file.txt", b"work/inner")
                    workspace.list("inner")
                except ToolError as error:
                    refused.append(error.error_type)
        finally:
            process.kill()
    assert seen == {"work/inner"}
    assert (base / "other" / "file.txt").read_text() == "other"
    assert [path.name for path in (base / "other").iterdir()] == ["file.txt"]


_NAME = st.sampled_from(["a", "b", "c"])
_PATH = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)
_TARGET = st.one_of(
    _PATH,
    st.builds("{{base}}/{}".format, st.sampled_from(["work", "data", "other", "work/a", "data/b"])),
    st.just("/"),
)
_TREE = st.lists(
    st.tuples(
        st.sampled_from(["work", "data", "other"]), st.lists(_NAME, max_size=2), _NAME, _TARGET
    ),
    max_size=8,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tree=_TREE, paths=st.lists(_TARGET, min_size=1, max_size=6))
def test_no_descriptor_outside_the_roots_is_ever_held(
    tree: list[tuple[str, list[str], str, str]],
    paths: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever folders and links there are, and whatever path is asked for."""
    base = tmp_path_factory.mktemp("tree")
    for name in ("work", "data", "other"):
        (base / name).mkdir()
    for root, folders, name, target in tree:
        with contextlib.suppress(OSError):
            (base / root).joinpath(*folders).mkdir(parents=True, exist_ok=True)
            (base / root).joinpath(*folders, name).symlink_to(target.format(base=base))
    workspace = Workspace(base / "work", [Root(base / "data", writable=False)])
    roots = [base / "work", base / "data"]
    for path in paths:
        with (
            contextlib.suppress(ToolError),
            workspace.place(path.format(base=base), parents="may_miss") as place,
        ):
            held = Path(f"/proc/self/fd/{place.directory}").readlink()
            assert any(held.is_relative_to(root) for root in roots)
            assert place.root.writable == held.is_relative_to(base / "work")
            found = place.stat()
            assert found is None or place.name == "." or not (held / place.name).is_symlink()
