"""edit: exactly once, and everything else as it was."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.domain.errors import ToolError
from agentd.sandbox.edits import Edits
from agentd.tools.fs.edit import edit
from agentd.tools.fs.replace import replace

_AGAIN = [HealthCheck.function_scoped_fixture]


def why(edits: Edits, path: str, old: str, new: str = "x", *, every: bool = False) -> ToolError:
    with pytest.raises(ToolError) as caught:
        edit(edits, path, old, new, every)
    return caught.value


@pytest.mark.requirement("S2-13", "S2-14")
def test_the_one_place_becomes_another_and_the_rest_stays(folder: Path, edits: Edits) -> None:
    (folder / "a.py").write_text("def f():\n    return 1\n\ndef g():\n    return 2\n")
    (folder / "a.py").chmod(0o755)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "f").write_text("one")
    assert edit(edits, "deep/er/f", "one", "two").path == "deep/er/f"
    assert (folder / "deep" / "er" / "f").read_text() == "two"
    made = edit(edits, "./a.py", "    return 2\n", "    return 3\n    # more\n")
    assert (folder / "a.py").read_text() == (
        "def f():\n    return 1\n\ndef g():\n    return 3\n    # more\n"
    )
    assert (made.path, made.lines, made.message) == ("a.py", [4], "Edited a.py at line 4.")
    assert stat.S_IMODE((folder / "a.py").stat().st_mode) == 0o755
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "deep"]


@pytest.mark.requirement("S2-14")
def test_what_occurs_twice_is_ambiguous_and_all_places_are_named(
    folder: Path, edits: Edits
) -> None:
    (folder / "f").write_text("x = 1\ny = 1\nx = 1\n")
    error = why(edits, "f", "x = 1")
    assert error.error_type == "ambiguous"
    assert "at lines 0, 2" in error.message
    assert (folder / "f").read_text() == "x = 1\ny = 1\nx = 1\n"
    assert edit(edits, "f", "x = 1", "x = 2", replace_all=True).lines == [0, 2]
    assert (folder / "f").read_text() == "x = 2\ny = 1\nx = 2\n"


def test_places_that_overlap_are_ambiguous(folder: Path, edits: Edits) -> None:
    (folder / "f").write_text("aaa")
    assert why(edits, "f", "aa").error_type == "ambiguous"
    edit(edits, "f", "aa", "b", replace_all=True)
    assert (folder / "f").read_text() == "ba"


@pytest.mark.requirement("S2-14")
@pytest.mark.parametrize(
    ("text", "old", "hint"),
    [
        ("def area(width):\n    return 1\n", "def area(width, height):", "0\tdef area(width):"),
        ("if x:\n\treturn 1\n", "if x:\n    return 1\n", "only in white space:\n0\tif x:\n1\t\t"),
        ("one\ntwo\n", "0\tone\n1\ttwo", "Leave out the line numbers"),
        ("one\ntwo", "two\n", "without the line ends"),
        ("one\ntwo\n", "one\r\ntwo", "other line ends"),
        ("one\ntwo\n", "q" * 50, "read f shows"),
    ],
)
def test_what_is_not_found_is_answered_with_what_is_there(
    text: str, old: str, hint: str, folder: Path, edits: Edits
) -> None:
    (folder / "f").write_text(text)
    error = why(edits, "f", old)
    assert error.error_type == "not_found"
    assert hint in (error.next_action_hint or "")
    assert (folder / "f").read_text() == text


def test_what_makes_no_sense_is_refused(folder: Path, edits: Edits) -> None:
    (folder / "f").write_text("text\n")
    (folder / "binary").write_bytes(b"\x7fELF\0\0")
    (folder / "folder").mkdir()
    assert why(edits, "f", "").error_type == "invalid_arguments"
    assert why(edits, "f", "text", "text").error_type == "nothing_to_do"
    assert why(edits, "f", "text", "\ud800").error_type == "invalid_arguments"
    assert why(edits, "F", "text").error_type == "not_found"
    assert why(edits, "binary", "ELF").error_type == "binary_file"
    assert why(edits, "folder", "x").error_type == "is_a_folder"
    assert why(edits, "../f", "x").error_type == "outside_workspace"
    assert why(edits, "\ud800", "x").error_type == "invalid_path"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "b\nc", "B\nC", b"a\r\nB\nC\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\n", "b", "x\r\ny", b"a\nx\ny\n"),
        (b"\xef\xbb\xbfa\nb", "a\n", "", b"\xef\xbb\xbfb"),
        (b"\xff\xfe" + "é\r\nb".encode("utf-16-le"), "é\n", "è\n", None),
        (b"caf\xe9 old\n", "old", "new", b"caf\xe9 new\n"),
        (b"one\rtwo\r\n", "two", "2", b"one\r2\r\n"),
    ],
)
def test_line_ends_marks_and_stray_bytes_come_out_as_they_went_in(
    before: bytes, old: str, new: str, after: bytes | None, folder: Path, edits: Edits
) -> None:
    (folder / "f").write_bytes(before)
    edit(edits, "f", old, new)
    expected = b"\xff\xfe" + "è\r\nb".encode("utf-16-le") if after is None else after
    assert (folder / "f").read_bytes() == expected


_PIECE = st.text("ab\n", max_size=6)


@settings(max_examples=500, deadline=None)
@given(
    lines=st.lists(st.tuples(st.text("ab", max_size=3), st.sampled_from(["\n", "\r\n"]))),
    last=st.text("ab", max_size=3),
    old=_PIECE,
    new=_PIECE,
    every=st.booleans(),
)
def test_an_edit_is_what_the_model_of_it_says(
    lines: list[tuple[str, str]], last: str, old: str, new: str, every: bool
) -> None:
    """The model: the text with plain line ends; and each line that is not touched as it was."""
    text = "".join(line + end for line, end in lines) + last
    plain = text.replace("\r\n", "\n")
    count = len(re.findall(f"(?={re.escape(old)})", plain)) if old else 0
    possible = count == 1 or (every and count > 1)
    try:
        found = replace(text, old, new, every=every, path="f")
    except ToolError as error:
        if error.error_type == "nothing_to_do":
            assert possible
            assert plain.replace(old, new) == plain
        else:
            assert not possible
            kinds = {"invalid_arguments": not old, "not_found": count == 0, "ambiguous": count > 1}
            assert kinds[error.error_type]  # noqa: PT017 - either is right
        return
    assert possible
    assert found.text.replace("\r\n", "\n") == plain.replace(old, new)
    if count == 1:
        at = plain.index(old)
        before = plain[:at].count("\n")
        after = len(_lines(plain[at + len(old) :].partition("\n")[2]))
        made, was = _lines(found.text), _lines(text)
        assert made[:before] == was[:before]
        assert made[len(made) - after :] == was[len(was) - after :]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
