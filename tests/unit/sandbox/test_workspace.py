"""Nothing outside the folder is reached, whatever a path says and whatever happens meanwhile."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a secret that must not be reached."""
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "file.txt").write_text("hello")
    (inside / "link").symlink_to("a/b")
    (inside / "absolute").symlink_to(inside / "a")
    (inside / "up").symlink_to("../secret.txt")
    (inside / "outside").symlink_to(tmp_path)
    (inside / "deep").symlink_to("a/b/../../../secret.txt")
    (inside / "loop").symlink_to("loop")
    (inside / "chain").symlink_to("link/file.txt")
    return inside


def read(root: Path, path: str) -> str:
    with Workspace(root).open(path) as file:
        return file.read().decode()


def refused(root: Path, path: str) -> str:
    """The type of the error that reading gives."""
    with pytest.raises(ToolError) as caught:
        read(root, path)
    return caught.value.error_type


@pytest.mark.parametrize(
    "path",
    [
        "a/b/file.txt",
        "./a//b/./file.txt",
        "a/../a/b/file.txt",
        "link/file.txt",
        "absolute/b/file.txt",
        "chain",
        "link/../b/file.txt",
    ],
)
def test_paths_and_links_inside_lead_to_the_file(path: str, root: Path) -> None:
    assert read(root, path) == "hello"
    assert read(root, str(root / "a" / "b" / "file.txt")) == "hello"


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "up", "outside/secret.txt", "deep", "a/../../secret.txt", "/etc/passwd", "/"],
)
def test_nothing_outside_is_reached(path: str, root: Path) -> None:
    assert refused(root, path) == "outside_workspace"
    with pytest.raises(ToolError):
        Workspace(root).write(path, b"broken in")
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_a_neighbour_whose_name_starts_the_same_is_outside(root: Path) -> None:
    neighbour = root.with_name("inside-too")
    neighbour.mkdir()
    (neighbour / "x").write_text("x")
    assert refused(root, str(neighbour / "x")) == "outside_workspace"
    assert refused(root, "../inside-too/x") == "outside_workspace"


def test_the_root_may_be_named_through_a_link(root: Path) -> None:
    alias = root.with_name("alias")
    alias.symlink_to(root)
    assert read(alias, str(alias / "a/b/file.txt")) == "hello"
    assert read(alias, str(root / "a/b/file.txt")) == "hello"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("loop", "too_many_links"),
        ("nowhere.txt", "not_found"),
        ("no/folder/x", "not_found"),
        ("a", "is_a_folder"),
        (".", "is_a_folder"),
        ("a/b/file.txt/x", "not_a_folder"),
        ("x" * 300, "invalid_path"),
        ("nul\0byte", "invalid_path"),
    ],
)
def test_what_can_not_be_read_says_why(path: str, kind: str, root: Path) -> None:
    assert refused(root, path) == kind


def test_a_name_that_is_nearly_right_is_offered(root: Path) -> None:
    with pytest.raises(ToolError) as caught:
        read(root, "a/b/fil.txt")
    assert "a/b/file.txt" in (caught.value.next_action_hint or "")


def test_pipes_sockets_and_devices_are_no_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "sock"))
    for name in ("pipe", "sock"):
        with pytest.raises(ToolError):
            read(root, name)
        with pytest.raises(ToolError):
            Workspace(root).write(name, b"x")
    listener.close()


@pytest.mark.requirement("S2-12", "S4-05")
def test_writing_makes_folders_and_replaces_the_whole_file(root: Path) -> None:
    workspace = Workspace(root)
    made = workspace.write("new/deep/x.txt", b"first")
    assert (made.path, made.size, made.created) == ("new/deep/x.txt", 5, True)
    assert stat.S_IMODE((root / "new/deep/x.txt").stat().st_mode) == 0o600
    (root / "new/deep/x.txt").chmod(0o755)
    assert not workspace.write("new/deep/x.txt", b"2").created
    assert (root / "new/deep/x.txt").read_bytes() == b"2"
    assert stat.S_IMODE((root / "new/deep/x.txt").stat().st_mode) == 0o755
    assert [path.name for path in (root / "new/deep").iterdir()] == ["x.txt"]


def test_a_link_inside_stays_a_link_when_it_is_written_through(root: Path) -> None:
    assert Workspace(root).write("chain", b"new").path == "a/b/file.txt"
    assert (root / "chain").is_symlink()
    assert read(root, "a/b/file.txt") == "new"


_WRITER = """
import sys
from pathlib import Path
from agentd.sandbox.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
while True:
    for letter in (b"a", b"b"):
        workspace.write("file.txt", letter * 200_000)
        print("written", flush=True)
"""


def test_after_kill_9_the_old_or_the_new_content_is_there_whole(root: Path) -> None:
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(root)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            for _ in range(3):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        content = (root / "file.txt").read_bytes()
        assert len(content) == 200_000
        assert len(set(content)) == 1


def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere(root: Path) -> None:
    """The classic race: between a check and its use the folder becomes a link to the outside."""
    stop = threading.Event()
    victim, spare = root / "victim", root / "spare"
    victim.mkdir()
    (victim / "secret.txt").write_text("harmless")
    outside = root.parent

    def swap() -> None:
        while not stop.is_set():
            # A write may make the folder anew between two of these steps; then that one stays.
            with contextlib.suppress(OSError):
                victim.rename(spare)
                victim.symlink_to(outside)
            with contextlib.suppress(OSError):
                victim.unlink()
            with contextlib.suppress(OSError):
                spare.rename(victim)
            shutil.rmtree(spare, ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    workspace, seen, rounds = Workspace(root), set[str](), 0
    try:
        while rounds < 2000 or not seen:
            rounds += 1
            with contextlib.suppress(ToolError):
                workspace.write("victim/secret.txt", b"harmless")
            with contextlib.suppress(ToolError), workspace.open("victim/secret.txt") as file:
                seen.add(file.read().decode())
    finally:
        stop.set()
        thread.join()
    assert seen == {"harmless"}
    assert (outside / "secret.txt").read_text() == "secret"


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    workspace = Workspace(root)
    for path in ("a/b/file.txt", "up", "loop", "nowhere", "a", "chain"):
        with contextlib.suppress(ToolError), workspace.open(path) as file:
            file.read()
        with contextlib.suppress(ToolError):
            workspace.list(path, depth=3)
    workspace.write("x/y/z", b"")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


_PART = st.sampled_from(
    ["a", "b", "..", ".", "link", "absolute", "up", "outside", "deep", "file.txt", "loop", ""]
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_PART, min_size=1, max_size=7))
def test_no_path_that_one_can_build_leads_outside(root: Path, parts: list[str]) -> None:
    path = "/".join(parts)
    try:
        with Workspace(root).place(path) as place:
            held = Path(f"/proc/self/fd/{place.directory}").readlink()
    except ToolError:
        return
    assert held == root or root in held.parents


@pytest.mark.requirement("S2-19")
def test_a_listing_has_types_and_sizes_and_follows_no_link(root: Path) -> None:
    found = {entry.path: (entry.type, entry.size) for entry in Workspace(root).list(".", depth=3)}
    assert found["a"] == ("dir", 0)
    assert found["a/b/file.txt"] == ("file", 5)
    assert found["outside"] == ("link", 0)
    assert not any(path.startswith("outside/") for path in found)
    assert list(found) == sorted(found)


def test_a_workspace_that_is_gone_is_the_owners_matter(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        Workspace(tmp_path / "gone").list(".")
    assert caught.value.error_type == "no_workspace"


def test_several_workers_make_the_same_new_folders(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with ThreadPoolExecutor(8) as workers:
        for number in range(60):
            paths = [f"{number}/b/c/{name}" for name in range(8)]
            assert len(list(workers.map(lambda path: workspace.write(path, b"x"), paths))) == 8


def test_a_path_of_endless_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="more than 100 folders"):
        Workspace(tmp_path).write("a/" * 3000 + "x", b"")
