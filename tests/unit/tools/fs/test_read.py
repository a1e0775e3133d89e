"""read and read_file: pages (agentd/tools/fs/pages.py)."""

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.call import call
from agentd.toolkit.definition import tool_of
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.result import ToolResult, model_content
from agentd.tools.fs.read import read

_NEXT = re.compile(r'Go on with read\(path="([^"]+)", offset=(\d+)\)\]$')


def why(workspace: Workspace, path: str, **more: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read(workspace, path, **more)
    return caught.value


@pytest.mark.requirement("S2-08", "S2-11", "S0-04")
def test_lines_are_numbered_from_0_as_offset_counts(folder: Path, workspace: Workspace) -> None:
    (folder / "a.txt").write_text("zero\none\ntwo\nthree\n")
    assert read(workspace, "a.txt").content == "0\tzero\n1\tone\n2\ttwo\n3\tthree"
    assert read(workspace, "a.txt", offset=2).content == "2\ttwo\n3\tthree"
    page = read(workspace, "a.txt", offset=1, limit=2)
    assert page.content.startswith("1\tone\n2\ttwo\n")
    assert (page.first, page.lines, page.more) == (1, 2, True)


@pytest.mark.requirement("S2-09", "S2-10")
@pytest.mark.parametrize(("limit", "most"), [(None, 50 * 1024), (1_000_000, 512 * 1024)])
def test_a_page_is_50_kb_and_512_kb_at_the_most(
    limit: int | None, most: int, folder: Path, workspace: Workspace
) -> None:
    (folder / "big.txt").write_text("x" * 99 + "\n" * 1 + ("y" * 99 + "\n") * 9999)
    page = read(workspace, "big.txt", limit=limit, numbered=False)
    assert page.lines == most // 100
    assert page.more
    assert f"[{1_000_000 - page.lines * 100} bytes follow. Go on with" in page.content


@pytest.mark.parametrize("line", [b"a line\n", b"x" * 1_000_003 + b"\n"])
def test_a_page_takes_no_more_memory_than_it_shows(
    line: bytes, folder: Path, workspace: Workspace
) -> None:
    most_bytes: dict[int, int] = {}
    for size in (4 << 20, 64 << 20):
        lines = size // len(line)
        (folder / "big.txt").write_bytes(line * lines)
        tracemalloc.start()
        assert read(workspace, "big.txt", offset=lines - 1).lines == 1
        most_bytes[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    small, large = most_bytes.values()
    assert large < 1.2 * small < 6 << 20


@pytest.mark.requirement("S2-10")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(st.text("abcü☃ \t", max_size=60), min_size=1, max_size=80),
    limit=st.integers(1, 30),
)
def test_following_the_notices_gives_the_whole_file(
    lines: list[str], limit: int, folder: Path, workspace: Workspace
) -> None:
    (folder / "f.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found: list[str] = []
    offset = 0
    while True:
        page = read(workspace, "f.txt", offset=offset, limit=limit, numbered=False)
        shown = page.content.split("\n") if page.lines else []
        found += shown[: page.lines]
        following = _NEXT.search(page.content)
        if not page.more:
            break
        assert following is not None
        offset = int(following[2])
    assert found == lines or (lines == [""] and found in ([], [""]))


def test_what_the_model_does_not_see_is_in_the_next_call_too(
    folder: Path, workspace: Workspace
) -> None:
    (folder / "f.txt").write_text("".join(f"line {number}\n" for number in range(5000)))
    page = read(workspace, "f.txt")
    shown = model_content(
        ToolResult.success(page.content, next_call=page.next_call), limit_chars=1000
    )
    assert isinstance(shown, str)
    last = shown.split("\n[cut:")[0].rstrip("\n").rsplit("\n", 1)[1]
    number = int(last.split("\t")[0])
    assert f"offset={number + 1})" in shown


def test_a_line_that_is_longer_than_a_page_is_shown_in_part(
    folder: Path, workspace: Workspace
) -> None:
    (folder / "one.json").write_text("x" * 100_000 + "\nnext\n")
    page = read(workspace, "one.json")
    assert "48800 bytes of it are missing" in page.content
    assert "offset=0, limit=1) shows up to 524288" in page.content
    assert 'Go on with read(path="one.json", offset=1)' in page.content
    assert len(read(workspace, "one.json", limit=1, numbered=False).content) > 100_000


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "(the file is empty)"),
        (b"\xef\xbb\xbfhi", "0\thi"),
        ("hé\n☃".encode("utf-16"), "0\thé\n1\t☃"),
        (b"a\r\nb\r\n", "0\ta\n1\tb"),
        (b"no end", "0\tno end"),
        (b"\n\n", "0\t\n1\t"),
    ],
)
def test_encodings_and_line_ends(
    data: bytes, shown: str, folder: Path, workspace: Workspace
) -> None:
    (folder / "f").write_bytes(data)
    assert read(workspace, "f").content == shown


def test_bytes_that_are_no_text_are_told(folder: Path, workspace: Workspace) -> None:
    (folder / "latin").write_bytes(b"caf\xe9\n")
    assert "no UTF-8" in read(workspace, "latin").content
    (folder / "real").write_text("a \ufffd that was there\n", encoding="utf-8")
    assert "no UTF-8" not in read(workspace, "real").content
    (folder / "binary").write_bytes(b"\x7fELF\0\0")
    assert why(workspace, "binary").error_type == "binary_file"


def test_an_offset_past_the_end_is_an_error_that_helps(folder: Path, workspace: Workspace) -> None:
    (folder / "f").write_text("one\n")
    for offset in (1, 5):
        error = why(workspace, "f", offset=offset)
        assert error.error_type == "past_end"
        assert "offset=0" in (error.next_action_hint or "")


@pytest.mark.requirement("S4-04")
async def test_read_file_gives_the_plain_whole_text(folder: Path, workspace: Workspace) -> None:
    (folder / "a.txt").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 999)
    made = tool_of(read)
    assert made is not None
    (alias,) = made.faces()[1:]
    assert alias.name == "read_file"
    assert list(alias.input_model.model_fields) == ["path"]
    injector = Injector({Workspace: lambda _: workspace})
    result = await call(alias, {"path": "a.txt"}, injector, CallContext(None))  # type: ignore[arg-type]
    assert result.content == (folder / "a.txt").read_text().rstrip("\n")
