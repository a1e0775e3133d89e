"""apply_patch: the envelope, where hunks fit, and all or nothing."""

import stat
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.sandbox.edits import Edits
from agentd.tools.fs.apply_patch import apply_patch
from agentd.tools.fs.patch_format import parse_patch
from agentd.tools.fs.patch_hunks import apply_hunks


def why(edits: Edits, patch: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        apply_patch(edits, patch)
    return caught.value


def patched(text: str, hunks: str) -> str:
    """What the hunks of one file make of `text`."""
    patch = f"*** Begin Patch\n*** Update File: f\n{textwrap.dedent(hunks)}*** End Patch"
    (update,) = parse_patch(patch)
    return apply_hunks(text, update.hunks, "f")


@pytest.mark.requirement("S2-15", "S2-16")
def test_files_are_added_updated_moved_and_deleted(folder: Path, edits: Edits) -> None:
    (folder / "a.py").write_text("one\ntwo\nthree\n")
    (folder / "in" / "side").mkdir(parents=True)
    (folder / "in" / "side" / "b.py").write_text("b\n")
    (folder / "old.py").write_text("x\ny\n")
    (folder / "old.py").chmod(0o755)
    (folder / "gone.txt").write_text("bye\n")
    made = apply_patch(
        edits,
        "*** Begin Patch\n"
        "*** Add File: new/deep/file.txt\n+hello\n++plus\n+\n"
        "*** Update File: a.py\n@@ one @@\n-two\n+2\n three\n"
        "*** Update File: old.py\n*** Move to: moved/new.py\n@@\n x\n-y\n+z\n"
        "*** Delete File: gone.txt\n"
        "*** Update File: in/side/b.py\n@@\n-b\n+B\n"
        "*** End Patch\n",
    )
    assert (folder / "new/deep/file.txt").read_text() == "hello\n+plus\n\n"
    assert (folder / "a.py").read_text() == "one\n2\nthree\n"
    assert (folder / "moved/new.py").read_text() == "x\nz\n"
    assert stat.S_IMODE((folder / "moved/new.py").stat().st_mode) == 0o755
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "in", "moved", "new"]
    assert (folder / "in" / "side" / "b.py").read_text() == "B\n"
    assert [(each.change, each.path, each.moved_to) for each in made.files] == [
        ("added", "new/deep/file.txt", None),
        ("updated", "a.py", None),
        ("moved", "old.py", "moved/new.py"),
        ("deleted", "gone.txt", None),
        ("updated", "in/side/b.py", None),
    ]
    assert made.message.splitlines()[3] == "moved old.py to moved/new.py"


@pytest.mark.parametrize(
    ("text", "hunks", "after"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
        ("a\nb\nc\n", "-b\n+B\n", "a\nB\nc\n"),
        ("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n c\n-d\n", "A\nb\nc\n"),
        ("f\nx\ng\nx\n", "@@ g\n-x\n+y\n", "f\nx\ng\ny\n"),
        ("f\nx\ng\nx\n", "@@ g @@\n-x\n+y\n", "f\nx\ng\ny\n"),
        (
            "class A:\n def f\n  x\nclass B:\n def f\n  x\n",
            "@@ class B\n@@ def f\n-  x\n+  y\n",
            None,
        ),
        ("a\n  x\nb\n", "@@ -1,3 +1,3 @@ a\n-  x\n+  y\n", "a\n  y\nb\n"),
        ("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n", "x\ny\nz\n"),
        ("a\nb  \nc\n", "@@\n a\n b\n-c\n+C\n", "a\nb  \nC\n"),
        ("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\nb\n", "@@\n a\n-b\n+c\n\n", "a\nc\n"),
        ("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n"),
        ("a\nb", "@@\n b\n+c\n", "a\nb\nc"),
        ("a\nb", "@@\n a\n-b\n", "a"),
        ("a\n", "@@\n-a\n", ""),
        ("", "@@\n+a\n", "a\n"),
        ("a\n", "@@\n+b\n", "a\nb\n"),
        ("a\nb\n", "@@ a\n+new\n", "a\nnew\nb\n"),
        ("def f\n x\n y\n", "@@ def f\n- x\n+ 1\n@@ def f\n- y\n+ 2\n", "def f\n 1\n 2\n"),
    ],
)
def test_hunks_fit_where_their_lines_stand(text: str, hunks: str, after: str | None) -> None:
    expected = "class A:\n def f\n  x\nclass B:\n def f\n  y\n" if after is None else after
    assert patched(text, hunks) == expected


@pytest.mark.parametrize(
    ("text", "hunks", "kind", "told"),
    [
        ("a\nx\nb\nx\n", "@@\n-x\n+y\n", "ambiguous", "fits 2 times in f, at lines 1, 3"),
        ("a\nb\n", "@@\n-c\n+d\n", "not_found", "line 3 of the patch"),
        ("a\nb\n", "@@ nowhere\n-a\n+d\n", "not_found", "no line of f is 'nowhere'"),
        ("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n", "not_found", "line 6 of the patch"),
        ("a\n  b\n", "@@\n-b\n+c\n", "not_found", "do not stand in f"),
    ],
)
def test_hunks_that_do_not_fit_say_where(text: str, hunks: str, kind: str, told: str) -> None:
    with pytest.raises(ToolError) as caught:
        patched(text, hunks)
    assert caught.value.error_type == kind
    assert told in caught.value.message


_BODY = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"


@pytest.mark.requirement("S2-16")
@pytest.mark.parametrize(
    "wrapped",
    [
        f"{_BODY}\n",
        f"\n\n{_BODY}\n\n",
        f"<<'EOF'\n{_BODY}\nEOF\n",
        f"apply_patch <<'PATCH'\n{_BODY}\nPATCH",
        f"cat <<EOF\n{_BODY}\nEOF",
        f"```diff\n{_BODY}\n```",
        _BODY.replace("\n", "\r\n"),
        _BODY.replace("*** End Patch", "\n*** End Patch  "),
    ],
)
def test_what_models_wrap_around_a_patch_is_taken_off(
    wrapped: str, folder: Path, edits: Edits
) -> None:
    apply_patch(edits, wrapped)
    assert (folder / "f").read_text() == "x\n"


@pytest.mark.requirement("S2-16")
@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("--- a\n+++ b\n", "line 1 of the patch: a patch begins with *** Begin Patch"),
        ("*** Begin Patch\n*** End Patch", "line 2 of the patch: the patch changes no file"),
        ("*** Begin Patch\n*** Add File: f\n+x", "line 4 of the patch: the patch ends without"),
        ("*** Begin Patch\n*** Add File: f\nx\n*** End Patch", "line 3 of the patch: every line"),
        ("*** Begin Patch\n*** Rename File: f\n*** End Patch", "line 2 of the patch: expected"),
        ("*** Begin Patch\n*** Add File:\n*** End Patch", "line 2 of the patch: the path is"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch", "line 3 of the patch: nothing is"),
        ("*** Begin Patch\n*** Update File: f\n@@\n*** End Patch", "the hunk has no lines"),
        (
            "*** Begin Patch\n*** Update File: f\n@@\nx\n*** End Patch",
            "line 4 of the patch: a line",
        ),
        (f"{_BODY}\n*** Add File: g\n", "line 5 of the patch: nothing may follow"),
    ],
)
def test_a_broken_patch_names_the_line(patch: str, told: str, edits: Edits) -> None:
    error = why(edits, patch)
    assert error.error_type == "invalid_patch"
    assert told in error.message


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("*** Delete File: nowhere\n", "not_found"),
        ("*** Delete File: folder\n", "is_a_folder"),
        ("*** Delete File: link\n", "is_a_link"),
        ("*** Update File: gone\n@@\n-x\n+y\n", "not_found"),
        ("*** Update File: a\n@@\n-nothing\n+y\n", "not_found"),
        ("*** Add File: a\n+x\n", "exists"),
        ("*** Add File: ../x\n+x\n", "outside_workspace"),
        ("*** Add File: a/b\n+x\n", "not_a_folder"),
        ("*** Update File: a\n*** Move to: /etc/x\n", "outside_workspace"),
        ("*** Update File: a\n*** Move to: b\n", "exists"),
        ("*** Delete File: b\n*** Update File: b\n@@\n-b\n+c\n", "not_found"),
    ],
)
def test_one_part_that_can_not_be_done_leaves_all_as_it_was(
    last: str, kind: str, folder: Path, edits: Edits
) -> None:
    for name in ("a", "b", "c"):
        (folder / name).write_text(f"{name}\n")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("a")
    first = "*** Update File: c\n@@\n-c\n+C\n*** Add File: new/n\n+n\n"
    error = why(edits, f"*** Begin Patch\n{first}{last}*** End Patch")
    assert error.error_type == kind
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "c", "folder", "link"]
    assert [(folder / name).read_text() for name in "abc"] == ["a\n", "b\n", "c\n"]


def test_a_later_part_sees_what_an_earlier_one_made(folder: Path, edits: Edits) -> None:
    (folder / "a").write_text("1\n2\n")
    (folder / "link").symlink_to("a")
    apply_patch(
        edits,
        "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Update File: ./link\n@@\n-2\n+two\n"
        "*** Add File: b\n+x\n*** Update File: b\n@@\n-x\n+y\n"
        "*** Update File: a\n*** Move to: c\n*** Add File: a\n+new\n*** End Patch",
    )
    assert {path.name: path.read_text() for path in folder.iterdir() if path.name != "link"} == {
        "a": "new\n",
        "b": "y\n",
        "c": "one\ntwo\n",
    }


_LINE = st.text("ab ", max_size=3).map(lambda text: text.rstrip() + "|")


@settings(max_examples=300, deadline=None)
@given(
    before=st.lists(_LINE, max_size=12),
    cuts=st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 3), st.lists(_LINE, max_size=3)), max_size=3
    ),
    crlf=st.booleans(),
    final=st.booleans(),
)
def test_a_patch_made_from_a_change_makes_that_change(
    before: list[str], cuts: list[tuple[int, int, list[str]]], crlf: bool, final: bool
) -> None:
    """The model: a list of lines, numbered so that none fits twice; slices are replaced."""
    lines = [f"{number}{line}" for number, line in enumerate(before)]
    hunks: list[str] = []
    after: list[str] = []
    at = 0
    for start, length, new in sorted(cuts, key=lambda cut: cut[0]):
        if start < at or start + length > len(lines) or (not length and not new):
            continue
        context = lines[max(at, start - 1) : start]
        if not context and not length:
            continue
        hunks.append("@@")
        hunks += [f" {line}" for line in context]
        hunks += [f"-{line}" for line in lines[start : start + length]]
        hunks += [f"+{line}" for line in new]
        after += lines[at:start] + new
        at = start + length
    after += lines[at:]
    if not hunks:
        return
    end = "\r\n" if crlf else "\n"

    def text_of(some: list[str]) -> str:
        return end.join(some) + (end if final and some else "")

    patch = "\n".join(["*** Begin Patch", "*** Update File: f", *hunks, "*** End Patch"])
    (update,) = parse_patch(patch)
    made = apply_hunks(text_of(lines), update.hunks, "f")
    # Of a text of one line without an end it can not be told which line ends it has.
    given_ends = end if len(lines) > 1 or final else "\n"
    assert made == text_of(after).replace(end, given_ends)


@settings(max_examples=300, deadline=None)
@given(st.text("*@+- abBeginEndPatchFile:\n", max_size=120))
def test_no_text_breaks_the_parser(text: str) -> None:
    for patch in (text, f"*** Begin Patch\n{text}\n*** End Patch"):
        try:
            assert parse_patch(patch)
        except ToolError as error:
            assert error.error_type == "invalid_patch"  # noqa: PT017 - either is right
