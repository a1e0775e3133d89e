"""A command on a branch: nothing of it counts before it has ended, and then all of it does."""

import json
import os
import shutil
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.branches import Branches
from agentd.sandbox.commands import Command, Commands, CommandSettings
from agentd.sandbox.limits import Limits
from agentd.sandbox.roots import Root
from tests.clock import HandClock
from tests.confined import make_commands, needs_branches, shell, until

pytestmark = needs_branches
KEY = CallKey("task-1/call-1")
_WEEK_S = 7 * 86_400


def make_branches(path: Path, **settings: Any) -> Branches:
    commands = make_commands(path, branches=True, **settings)
    return Branches(path / "branches", commands, HandClock(), _WEEK_S)


async def run(path: Path, text: str, **facts: Any) -> str:
    """In a workspace of its own, to its end; what it printed."""
    done = await make_branches(path).run(KEY, shell(text, **facts))
    assert done.exit_code == 0, done
    return done.output


def tree(folder: Path) -> dict[str, Any]:
    """Every path below it with what it is: a text, a link's target, or None for a folder."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = None
        elif path.is_file():
            found[name] = path.read_text()
        else:
            found[name] = "special"
    return found


def fill(workspace: Path) -> None:
    (workspace / "old" / "deep").mkdir(parents=True)
    (workspace / "old" / "deep" / "a").write_text("1")
    (workspace / "old" / "b").write_text("2")
    (workspace / "gone").write_text("3")
    (workspace / "replaced").mkdir()
    (workspace / "replaced" / "inside").write_text("4")
    (workspace / "file").write_text("5")
    (workspace / "link").symlink_to("file")


EVERYTHING = """
set -e
echo 1+ >> old/deep/a; rm old/b gone; mkdir -p new/deeper; echo n > new/deeper/c
rm -r replaced; mkdir replaced; echo other > replaced/else
rm file; mkdir file; echo in > file/in
rm link; echo was a link > link; ln -s /etc/passwd outside; ln new/deeper/c hard
mkfifo pipe new/pipe; printf x > script; chmod 750 script; chmod 700 old; mkdir -m 500 locked
"""
EXPECTED = {
    "file": None,
    "file/in": "in\n",
    "hard": "n\n",
    "link": "was a link\n",
    "locked": None,
    "new": None,
    "new/deeper": None,
    "new/deeper/c": "n\n",
    "old": None,
    "old/deep": None,
    "old/deep/a": "11+\n",
    "outside": "-> /etc/passwd",
    "replaced": None,
    "replaced/else": "other\n",
    "script": "x",
}


async def test_all_kinds_of_changes_are_there_when_it_has_ended(tmp_path: Path) -> None:
    branches = make_branches(tmp_path)
    workspace = tmp_path / "workspace"
    fill(workspace)
    before = tree(workspace)
    async with anyio.create_task_group() as group:
        text = f"{EVERYTHING} touch /tmp/done; cat"
        started = anyio.Event()

        async def command() -> None:
            started.set()
            await branches.run(KEY, Command(["bash", "-c", text + "; sleep 0.3"], 10))

        group.start_soon(command)
        await until(lambda: bool(list((tmp_path / "branches").glob("*/0/upper/locked"))))
        assert tree(workspace) == before
    assert tree(workspace) == EXPECTED
    assert stat.S_IMODE((workspace / "script").stat().st_mode) == 0o750
    assert stat.S_IMODE((workspace / "locked").stat().st_mode) == 0o500
    assert stat.S_IMODE((workspace / "old").stat().st_mode) == 0o700
    assert (workspace / "hard").stat().st_ino == (workspace / "new" / "deeper" / "c").stat().st_ino
    marks = [
        mark for path in workspace.rglob("*") for mark in os.listxattr(path, follow_symlinks=False)
    ]
    assert marks == []
    left = {path.name for path in (tmp_path / "branches").glob("*/*")}
    assert left == {"lock", "started.json", "outcome.json", "merged"}


async def test_the_same_on_another_disk(tmp_path: Path) -> None:
    other = Path("/dev/shm") / f"agentd-test-{os.getpid()}"
    if not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is no other disk")
    other.mkdir()
    try:
        fill(other)
        settings = CommandSettings(branches=tmp_path / "branches")
        branches = Branches(
            tmp_path / "branches", Commands([Root(other)], settings), HandClock(), 9
        )
        done = await branches.run(KEY, shell(EVERYTHING))
        assert done.exit_code == 0, done
        assert tree(other) == EXPECTED
        assert stat.S_IMODE((other / "script").stat().st_mode) == 0o750
    finally:
        (other / "locked").chmod(0o700)
        shutil.rmtree(other)


async def test_each_writable_root_has_its_branch(tmp_path: Path) -> None:
    roots = [tmp_path / "workspace", tmp_path / "second"]
    for root in roots:
        root.mkdir()
    settings = CommandSettings(branches=tmp_path / "branches")
    commands = Commands([Root(root) for root in roots], settings)
    branches = Branches(tmp_path / "branches", commands, HandClock(), _WEEK_S)
    text = f"echo 1 > a; echo 2 > {roots[1]}/b; sleep 0.2; ls {roots[0]} {roots[1]}; rm b"
    async with anyio.create_task_group() as group:
        group.start_soon(branches.run, KEY, shell(text))
        await until(lambda: bool(list((tmp_path / "branches").glob("*/1/upper/b"))))
        assert tree(roots[1]) == {}
    assert (tree(roots[0]), tree(roots[1])) == ({"a": "1\n"}, {"b": "2\n"})


async def test_a_cancelled_command_has_changed_nothing(tmp_path: Path) -> None:
    branches = make_branches(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(branches.run, KEY, shell("echo 1 > a; sleep 60"))
        await until(lambda: bool(list((tmp_path / "branches").glob("*/0/upper/a"))))
        group.cancel_scope.cancel()
    assert tree(tmp_path / "workspace") == {}
    assert await branches.reconcile(KEY, shell("echo 1 > a; sleep 60")) is None
    assert not list((tmp_path / "branches").iterdir())


async def test_the_changes_of_a_command_that_ran_out_of_time_are_kept(tmp_path: Path) -> None:
    done = await make_branches(tmp_path).run(KEY, shell("echo 1 > a; sleep 60", timeout_s=0.3))
    assert done.timed_out
    assert tree(tmp_path / "workspace") == {"a": "1\n"}


async def test_what_fills_the_disk_is_dropped(tmp_path: Path) -> None:
    branches = make_branches(tmp_path, limits=Limits(disk_mb=3, file_mb=50))
    done = await branches.run(KEY, shell("head -c 20m /dev/urandom > big; sync; sleep 9"))
    assert done.exceeded is not None
    assert "commands.disk_mb" in done.exceeded
    assert tree(tmp_path / "workspace") == {}


async def test_an_outcome_is_told_again_and_only_for_that_call(tmp_path: Path) -> None:
    branches = make_branches(tmp_path)
    command = shell("echo 1 >> a; echo said; exit 4")
    done = await branches.run(KEY, command)
    assert await branches.reconcile(KEY, command) == done
    assert await branches.reconcile(KEY, shell("echo other")) is None
    assert await branches.reconcile(CallKey("task-1/call-2"), command) is None
    assert tree(tmp_path / "workspace") == {"a": "1\n"}
    # The next call of the task means that the result of this one has been kept.
    await branches.run(CallKey("task-1/call-2"), shell("true"))
    assert await branches.reconcile(KEY, command) is None


async def test_a_merge_that_was_cut_off_is_finished_at_any_point(tmp_path: Path) -> None:
    """Each number of steps that a killed process may have done, by what it leaves in the branch."""
    for steps in range(0, 60, 4):
        path = tmp_path / str(steps)
        path.mkdir()
        branches = make_branches(path)
        fill(path / "workspace")
        done = await _cut_off(branches, path, steps)
        if done:
            assert steps > 10
            break
        await make_branches(path).settle()
        assert tree(path / "workspace") == EXPECTED, steps
        found = await branches.reconcile(KEY, shell(EVERYTHING))
        assert found is not None
        assert found.exit_code == 0
    else:
        pytest.fail("the merge has more steps than were tried")


async def _cut_off(branches: Branches, path: Path, steps: int) -> bool:
    """Run everything; the merge dies after so many steps. True: it did not get that far."""
    left = steps

    def dying(function: Any) -> Any:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if list(path.glob("branches/*/outcome.json")):
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
            return function(*arguments, **named)

        return step

    assert (await branches._commands.features()).branches
    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "unlink", "rmdir", "mkdir"):
            patch.setattr(f"agentd.sandbox.merge.os.{name}", dying(getattr(os, name)))
        try:
            await branches.run(KEY, shell(EVERYTHING))
        except (KeyboardInterrupt, BaseExceptionGroup):
            return False
    return True


async def test_branches_of_the_dead_are_dropped_and_old_outcomes_forgotten(tmp_path: Path) -> None:
    clock = HandClock()
    branches = Branches(
        tmp_path / "branches", make_commands(tmp_path, branches=True), clock, _WEEK_S
    )
    await branches.run(KEY, shell("true"))
    dead = tmp_path / "branches" / "dead"
    (dead / "0" / "upper").mkdir(parents=True)
    (dead / "0" / "upper" / "a").write_text("never happened")
    (dead / "started.json").write_text(json.dumps({"branch": True, "digest": ""}))
    clock.advance(seconds=-clock.now().timestamp() + (tmp_path / "branches").stat().st_mtime)
    await branches.settle()
    assert not (dead / "0").exists()
    assert tree(tmp_path / "workspace") == {}
    assert len(list((tmp_path / "branches").glob("*/outcome.json"))) == 1
    clock.advance(seconds=timedelta(days=8).total_seconds())
    await branches.settle()
    assert not list((tmp_path / "branches").iterdir())


async def test_a_branch_at_work_is_left_alone_by_another_daemon(tmp_path: Path) -> None:
    branches = make_branches(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(branches.run, KEY, shell("echo 1 > a; sleep 0.5; echo 2 >> a"))
        await until(lambda: bool(list((tmp_path / "branches").glob("*/0/upper/a"))))
        await make_branches(tmp_path).settle()
    assert tree(tmp_path / "workspace") == {"a": "1\n2\n"}


async def test_what_worked_on_no_branch_has_an_unknown_outcome(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)  # transactional = false
    branches = Branches(tmp_path / "branches", commands, HandClock(), _WEEK_S)
    assert await branches.reconcile(KEY, shell("echo 1 > a")) is None
    await branches.run(KEY, shell("echo 1 > a"))
    with pytest.raises(ToolError) as caught:
        await branches.reconcile(KEY, shell("echo 1 > a"))
    assert caught.value.error_type == "outcome_unknown"


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="there is no python3")
async def test_a_tree_of_any_depth_can_be_made_and_removed(tmp_path: Path) -> None:
    deep = "import os\nfor _ in range(300): os.mkdir('d'); os.chdir('d')"
    await run(tmp_path, f'/usr/bin/python3 -c "{deep}"')
    await run(tmp_path, "rm -r d; mkdir d; echo 1 > d/a")
    assert tree(tmp_path / "workspace") == {"d": None, "d/a": "1\n"}


async def test_symlinks_are_not_followed_by_a_merge(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("1")
    await run(
        tmp_path, f"ln -s {outside} way; ln -s {outside}/kept file; mkdir real; echo 1 > real/a"
    )
    await run(tmp_path, "rm way; mkdir way; echo 2 > way/kept; rm file; echo 2 > file")
    assert tree(outside) == {"kept": "1"}
    assert tree(tmp_path / "workspace")["way/kept"] == "2\n"
