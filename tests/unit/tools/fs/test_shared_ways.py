"""What the tools for files share, whatever they are called: decisions C1 to C4 and C28."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentd.app_tools import call_tool, make_toolbox
from agentd.config import load_config
from agentd.domain.errors import ToolError
from agentd.home import make_home
from agentd.sandbox.commands import Commands
from agentd.sandbox.edits import Edits
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.store.store import Store
from agentd.toolkit.call import call
from agentd.toolkit.definition import Tool, tool_of
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.result import ToolResult
from agentd.tools.fs.apply_patch import apply_patch
from agentd.tools.fs.edit import edit
from agentd.tools.fs.glob import glob
from agentd.tools.fs.ls import ls
from agentd.tools.fs.read import read
from agentd.tools.fs.workspace import workspace as workspace_tool
from agentd.tools.fs.write import write
from tests.confined import needs_sandbox

_NEXT = re.compile(r"Go on with read\((.+)\)\]$")
_PATCH = "*** Begin Patch\n*** Update File: {path}\n@@\n-one\n+two\n*** End Patch\n"


def faces(tool: Callable[..., Any], workspace: Workspace) -> dict[str, Callable[..., Any]]:
    """A tool by each of its names, called as the model calls it."""
    made = tool_of(tool)
    assert made is not None
    injector = Injector({Workspace: lambda _: workspace})

    def caller(face: Any) -> Callable[..., Any]:
        async def ask(**arguments: Any) -> Any:
            return await call(face, arguments, injector, CallContext(None))  # type: ignore[arg-type]

        return ask

    return {face.name: caller(face) for face in made.faces()}


@pytest.mark.requirement("C1")
async def test_every_face_of_reading_shows_the_same_lines_and_the_next_call(
    folder: Path, workspace: Workspace
) -> None:
    whole = [f"line {number} ü" for number in range(20_000)]
    (folder / "big.txt").write_text("\n".join(whole) + "\n", encoding="utf-8")
    by_name = faces(read, workspace) | faces(workspace_tool, workspace)
    numbered = await by_name["read"](path="big.txt")
    plain = await by_name["read"](path="big.txt", numbered=False)
    action = await by_name["workspace"](action="read", path="big.txt")
    assert action.content == plain.content
    assert re.sub(r"(?m)^ *\d+\t", "", numbered.content) == plain.content
    seen: list[str] = []
    page = plain
    while notice := _NEXT.search(page.content):  # as a model would: the call as it stands there
        seen += page.content.splitlines()[:-1]
        arguments = json.loads("{" + re.sub(r"(\w+)=", r'"\1": ', notice[1]) + "}")
        page = await by_name["read"](**arguments, numbered=False)
    assert [*seen, *page.content.splitlines()] == whole
    every = await by_name["read_file"](path="big.txt")
    assert every.content.splitlines()[: len(whole)] == whole


@pytest.mark.requirement("C1")
async def test_every_face_of_reading_refuses_the_same_in_the_same_words(
    folder: Path, workspace: Workspace
) -> None:
    (folder / "binary").write_bytes(b"\0\1\2")
    by_name = faces(read, workspace) | faces(workspace_tool, workspace)
    for path, kind in (("binary", "binary_file"), ("gone", "not_found")):
        said = [
            await by_name["read"](path=path),
            await by_name["read_file"](path=path),
            await by_name["workspace"](action="read", path=path),
        ]
        assert {each.error_type for each in said} == {kind}
        assert len({each.content for each in said}) == 1


@pytest.mark.requirement("C2")
async def test_every_face_of_writing_replaces_the_file_at_once(
    folder: Path, workspace: Workspace
) -> None:
    by_name = faces(write, workspace) | faces(workspace_tool, workspace)
    for name in ("write", "write_file", "workspace"):
        (folder / "a.txt").write_text("as it was")
        before = (folder / "a.txt").stat().st_ino
        more = {"action": "write"} if name == "workspace" else {}
        with (folder / "a.txt").open() as reader:
            done = await by_name[name](path="a.txt", content=name, **more)
            assert reader.read() == "as it was"  # who reads meanwhile sees no half of it
        assert done.content == f"Replaced a.txt ({len(name)} bytes)."
        assert (folder / "a.txt").read_text() == name
        assert (folder / "a.txt").stat().st_ino != before
        assert [each.name for each in folder.iterdir()] == ["a.txt"]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfone\r\nrest\r\n", b"one\nno end", b"one\n\xff\xfe\n"]
)
def test_both_ways_to_edit_leave_the_same_bytes(data: bytes, folder: Path, edits: Edits) -> None:
    for name in ("a", "b"):
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o751)
    edit(edits, "a", "one", "two")
    apply_patch(edits, _PATCH.format(path="b"))
    made = (folder / "a").read_bytes()
    assert made == (folder / "b").read_bytes() == data.replace(b"one", b"two")
    assert (folder / "a").stat().st_mode == (folder / "b").stat().st_mode


@pytest.mark.requirement("C3")
def test_both_ways_to_edit_change_nothing_when_they_do_not_fit(folder: Path, edits: Edits) -> None:
    (folder / "a").write_text("one\none\n")
    (folder / "b").write_text("one\n")
    second = "*** Update File: a\n@@\n-one\n+two\n*** End Patch\n"
    patch = _PATCH.format(path="b").replace("*** End Patch\n", second)
    for change in (lambda: edit(edits, "a", "one", "two"), lambda: apply_patch(edits, patch)):
        with pytest.raises(ToolError) as caught:
            change()
        assert caught.value.error_type == "ambiguous"
    assert ((folder / "a").read_text(), (folder / "b").read_text()) == ("one\none\n", "one\n")


@pytest.mark.requirement("C4")
async def test_every_face_of_listing_sees_the_same_files(
    folder: Path, workspace: Workspace, tmp_path: Path
) -> None:
    for name in ("a.txt", "src/b.py", "src/deep/c d.py", "src/deep/ü\n.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("12345")
    (tmp_path / "outside").write_text("x")
    (folder / "escape").symlink_to(tmp_path)
    listed = ls(workspace, ".", depth=10)
    files = sorted(each.path for each in listed.entries if each.type == "file")
    assert files == ["a.txt", "src/b.py", "src/deep/c d.py", "src/deep/ü\n.txt"]
    found = await glob(workspace, Commands([Root(folder)]), "**/*")
    assert sorted(found.paths) == files
    level = ls(workspace, "src")
    assert workspace_tool(workspace, "list", "src").content == level.content


@needs_sandbox
@pytest.mark.requirement("C28")
@pytest.mark.parametrize("configured", ["", "elsewhere", "{tmp_path}/project"])
async def test_relative_paths_start_in_the_workspace_wherever_that_is(
    configured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    make_home(home)
    there = home / "workspace"
    if configured:
        path = configured.format(tmp_path=tmp_path)
        there = home / path
        there.mkdir()
        monkeypatch.setenv("AGENTD_WORKSPACE__PATH", path)
    monkeypatch.chdir(tmp_path)  # where the daemon was started says nothing
    config = load_config(home)
    async with Store(config.database_path) as store:
        tools = make_toolbox(config, store)

        async def ask(name: str, **arguments: Any) -> ToolResult:
            tool = tools.registry.find(name)
            assert isinstance(tool, Tool)
            return await call_tool(tools, store, tool, arguments)

        assert (await ask("write", path="notes/a.txt", content="here")).ok
        assert (there / "notes/a.txt").read_text() == "here"
        assert (await ask("bash", command="cat notes/a.txt")).content == "here"
        (there / "out").symlink_to(tmp_path)
        for path in ("../agentd.toml", "out/home/agentd.toml", str(home / "agentd.toml")):
            assert (await ask("read", path=path)).error_type == "outside_workspace"
