"""Texts that are made to take a daemon's time or memory: an edit of them is quick, or refused."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.glob import glob
from agentd.tools.fs.grep import grep
from agentd.tools.fs.nearest import hint_at_nearest
from agentd.tools.fs.patch_format import parse_patch
from agentd.tools.fs.patch_hunks import apply_hunks
from agentd.tools.fs.replace import replace
from tests.confined import needs_sandbox
from tests.lag import measured_lag

_MB = 1 << 20
_HEAD = "*** Begin Patch\n*** Update File: a\n"
_TAIL = "*** End Patch"


def _edit(text: str, old: str, new: str, *, every: bool = False) -> None:
    replace(text, old, new, every=every, path="f")


def _patch(body: str, text: str = "") -> None:
    (part,) = parse_patch(_HEAD + body + _TAIL)
    apply_hunks(text, getattr(part, "hunks", ()), "a")


def _refusal(attack: Callable[[], object]) -> str | None:
    try:
        attack()
    except ToolError as error:
        return error.error_type
    return None


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        (lambda: _edit("a" * _MB, "a" * 10_000, "b"), "ambiguous"),
        (lambda: _edit("a" * 90_000, "a", "x\n", every=True), None),
        (lambda: _edit("a" * _MB, "a", "b", every=True), "too_large"),
        (lambda: _edit("a " * 50_000, "a", "b" * 10_000, every=True), "too_large"),
        (lambda: _edit("a\n" * 500_000, "a\n" * 20_000 + "b", "c"), "not_found"),
        (lambda: hint_at_nearest("ab" * 99 + "a\n" + "ba" * 80 * 5000, "ab" * 90, "f"), None),
        (lambda: _patch("@@\n" + "\n" * 30_000 + "+x\n"), "not_found"),
        (lambda: _patch("@@\n" + "+x\n" * 100_000), None),
        (lambda: _patch("@@\n" + "-a\n" * 20_000 + "-b\n", "a\n" * 400_000), "not_found"),
        (lambda: _patch("@@\n" + "-a\n" * 100_000 + "+b\n", "a\n" * 100_000), None),
        (lambda: _patch("@@ b\n" * 5000 + "-a\n", "a\n" * 100_000), "too_large"),
        (lambda: _patch("@@\n-a\n+b\n" * 5000, "a\n" * 100_000), "too_large"),
        (lambda: _patch("@@\n-a\n+b\n", "\n" * 4 * _MB), "too_large"),
        (lambda: parse_patch(f"*** Begin Patch\n*** Add File: x{' ' * _MB}x\n+\n{_TAIL}"), None),
        (lambda: _patch(f"*** Move to: x{' ' * _MB}x\n@@\n+x\n"), None),
    ],
)
def test_it_is_quick_or_refused(attack: Callable[[], object], kind: str | None) -> None:
    begun = time.process_time()
    assert _refusal(attack) == kind
    assert time.process_time() - begun < 3


def test_what_is_found_is_still_the_right_place() -> None:
    text = "a\r\n\r\nb  \r\na\r\nb\r\n"
    (part,) = parse_patch(f"{_HEAD}@@\n-a\n-b\n+c\n{_TAIL}")
    assert apply_hunks(text, part.hunks, "a") == "a\r\n\r\nb  \r\nc\r\n"  # pyright: ignore[reportAttributeAccessIssue] - it is an update
    found = replace("a\nb\r\nab\n", "a", "x\ny", every=True, path="f")
    assert (found.text, found.lines) == ("x\ny\nb\r\nx\nyb\n", [0, 2])


@needs_sandbox
async def test_a_slow_search_does_not_hold_the_loop(folder: Path, workspace: Workspace) -> None:
    for number in range(8000):
        (folder / f"{'ax' * 120}{number}").touch()
    slow = "[a]{" + ",".join(f"*a*a*x*a*z{each}" for each in range(60)) + "}"
    commands = Commands([Root(folder)])
    await commands.features()
    async with measured_lag() as lag:
        assert not (await glob(workspace, commands, slow)).paths
        assert not (await grep(workspace, commands, "a", include=slow)).matches
    assert lag.share < 0.5


def test_many_names_that_are_alike_do_not_take_long_to_compare(
    folder: Path, workspace: Workspace
) -> None:
    for number in range(3000):
        (folder / f"{'a' * 150}{number}").touch()
    begun = time.process_time()
    with pytest.raises(ToolError, match="does not exist"), workspace.open("a" * 150 + "b"):
        pass
    assert time.process_time() - begun < 2
