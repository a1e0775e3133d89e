"""Edits: turns, receipts, and what happens when one of several files can not be changed."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.changes import Change
from agentd.sandbox.edits import Edits
from agentd.sandbox.workspace import Workspace
from tests.clock import HandClock

_ASKED = {"patch": "this one"}


@dataclass
class Place:
    """A workspace with the files a, b and c, and the receipts of a home."""

    folder: Path
    receipts: Path

    def edits(self, key: str = "task/call") -> Edits:
        return Edits(Workspace(self.folder), self.receipts, CallKey(key))

    def files(self) -> dict[str, str]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_text() for path in found}

    def kept(self) -> int:
        return len([path for path in self.receipts.glob("*") if path.is_dir()])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text(f"old {name}")
        (folder / name).chmod(0o640)
    return Place(folder, tmp_path / "run" / "edits")


def changes() -> list[Change]:
    return [
        Change("c", b"old c", None, 0o640),
        Change("a", b"old a", b"new a", 0o640),
        Change("b", b"old b", b"new b", 0o640),
        Change("x/y/d", None, b"new d", 0o600),
    ]


_BEFORE = {"a": "old a", "b": "old b", "c": "old c"}
_AFTER = {"a": "new a", "b": "new b", "x/y/d": "new d"}


def apply(edits: Edits) -> None:
    with edits.turn():
        edits.apply(changes(), _ASKED, {"message": "done"})


def failing(original: Callable[..., Any], at: int, seen: list[int]) -> Callable[..., Any]:
    """`original`, which fails once as on a full disk."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        seen.append(1)
        if len(seen) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*arguments, **named)

    return wrapped


@pytest.mark.parametrize("call", ["rename", "unlink", "fsync", "mkdir", "fchmod"])
def test_a_failure_at_any_step_leaves_everything_as_it_was(
    call: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, at = getattr(os, call), 0
    while True:
        at += 1
        seen: list[int] = []
        monkeypatch.setattr(os, call, failing(original, at, seen))
        try:
            apply(place.edits())
        except ToolError as error:
            assert error.error_type == "disk_full"  # noqa: PT017 - until it succeeds
        else:
            break
        finally:
            monkeypatch.setattr(os, call, original)
        assert place.files() == _BEFORE
        assert sorted(path.name for path in place.folder.iterdir()) == ["a", "b", "c"]
        assert (place.folder / "c").stat().st_mode & 0o777 == 0o640
        assert place.kept() == 0
    assert at > 1
    assert place.files() == _AFTER
    assert (place.folder / "a").stat().st_mode & 0o777 == 0o640


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(place: Place) -> None:
    (place.folder / "b").write_text("theirs")
    with pytest.raises(ToolError) as caught:
        apply(place.edits())
    assert caught.value.error_type == "changed_meanwhile"
    assert place.files() == {**_BEFORE, "b": "theirs"}


def test_a_call_that_had_begun_is_finished_and_gives_its_result(place: Place) -> None:
    assert place.edits().happened(_ASKED) is None
    apply(place.edits())
    (place.folder / "a").write_text("old a")
    (place.folder / "x/y/d").unlink()
    assert place.edits().happened({"patch": "another"}) is None
    assert place.edits("task/other").happened(_ASKED) is None
    assert place.edits().happened(_ASKED) == {"message": "done"}
    assert place.files() == _AFTER


def test_a_file_that_is_neither_old_nor_new_makes_the_outcome_unknown(place: Place) -> None:
    apply(place.edits())
    (place.folder / "a").write_text("old a")
    (place.folder / "b").write_text("theirs")
    with pytest.raises(ToolError) as caught:
        place.edits().happened(_ASKED)
    assert caught.value.error_type == "outcome_unknown"
    assert "a: not changed; b: changed by somebody else" in caught.value.message
    assert place.files() == {**_AFTER, "a": "old a", "b": "theirs"}


def test_a_damaged_receipt_makes_the_outcome_unknown(place: Place) -> None:
    apply(place.edits())
    (receipt,) = place.receipts.glob("*/receipt.json")
    receipt.write_text("{")
    with pytest.raises(ToolError) as caught:
        place.edits().happened(_ASKED)
    assert caught.value.error_type == "outcome_unknown"


def test_receipts_go_with_the_next_edit_of_the_task_or_after_a_week(place: Place) -> None:
    clock = HandClock()
    for key in ("one/1", "two/1", "two/2"):
        edits = place.edits(key)
        with edits.turn():
            there = edits.look("a")
            new = (there.content or b"") + b"!"
            edits.apply([Change("a", there.content, new, there.mode)], _ASKED, {})
    assert place.kept() == 2
    assert place.edits("two/2").happened(_ASKED) == {}
    now_s = clock.now().timestamp()
    for receipt in place.receipts.iterdir():
        os.utime(receipt, (now_s, now_s))
    clock.advance(timedelta(days=6).total_seconds())
    place.edits().forget_old(clock)
    assert place.kept() == 2
    clock.advance(timedelta(days=2).total_seconds())
    place.edits().forget_old(clock)
    assert place.kept() == 0


def test_an_edit_by_a_person_leaves_no_receipt(place: Place) -> None:
    apply(place.edits("no-task"))
    assert place.kept() == 0
    assert place.files() == _AFTER


_COUNTER = """
import sys
from pathlib import Path
from agentd.domain.run import CallKey
from agentd.sandbox.changes import Change
from agentd.sandbox.edits import Edits
from agentd.sandbox.workspace import Workspace
for number in range(20):
    key = CallKey(f"{sys.argv[3]}/{number}")
    edits = Edits(Workspace(Path(sys.argv[1])), Path(sys.argv[2]), key)
    with edits.turn():
        there = edits.look("count")
        new = str(int(there.content) + 1).encode()
        edits.apply([Change("count", there.content, new, there.mode)], {}, {})
"""


def test_no_edit_of_several_processes_is_lost(place: Place) -> None:
    (place.folder / "count").write_text("0")
    command = [sys.executable, "-c", _COUNTER, str(place.folder), str(place.receipts)]
    running = [subprocess.Popen([*command, name]) for name in ("one", "two", "three")]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert (place.folder / "count").read_text() == "60"


def test_what_is_too_large_to_edit_is_refused(place: Place) -> None:
    with (place.folder / "large").open("wb") as file:
        file.truncate(21 * 1024 * 1024)
    with pytest.raises(ToolError) as caught:
        place.edits().look("large")
    assert caught.value.error_type == "too_large"
