"""Control groups for commands, where this machine lets us make any."""

import os
from pathlib import Path

import pytest

from agentd.sandbox.control_group import control_group
from agentd.sandbox.limits import Limits
from tests.confined import make_commands, needs_sandbox, shell, until


def _groups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob("**/agentd-command-*"))


def _most(group: Path) -> str:
    try:
        return (group / "pids.max").read_text().strip()
    except OSError:  # another test's, which has ended
        return ""


@pytest.fixture
def _grouping() -> None:
    with control_group(Limits()) as group:
        if group is None:
            pytest.skip("no control group can be made here")


@pytest.mark.usefixtures("_grouping")
def test_a_group_has_limits_takes_a_process_and_goes() -> None:
    with control_group(Limits(processes=7)) as group:
        assert group is not None
        (folder,) = [each for each in _groups() if _most(each) == "71"]
        group.add(os.getpid())
        inside = (folder / "cgroup.procs").read_text().split()
        (folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        assert str(os.getpid()) in inside
    assert folder not in _groups()


@needs_sandbox
@pytest.mark.usefixtures("_grouping")
async def test_a_command_is_in_a_group_and_leaves_none(tmp_path: Path) -> None:
    commands = make_commands(tmp_path, limits=Limits(processes=77))
    async with commands.start(shell("sleep 60")) as child:
        (folder,) = [each for each in _groups() if _most(each) == "141"]
        assert str(child.pid) in (folder / "cgroup.procs").read_text().split()

    def is_gone() -> bool:
        with control_group(Limits()):  # who makes the next one takes away what was left
            return folder not in _groups()

    await until(is_gone)


def test_without_the_right_to_make_one_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.sandbox.control_group._ROOT", tmp_path)
    with control_group(Limits()) as group:
        assert group is None
