"""Control groups for commands, where this machine lets us make any."""

import os
from pathlib import Path

import pytest

from agentd.sandbox.control_group import control_group
from agentd.sandbox.limits import Limits
from tests.confined import make_commands, needs_sandbox, run


def _groups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob("**/agentd-command-*"))


@pytest.fixture
def _grouping() -> None:
    with control_group(Limits()) as group:
        if group is None:
            pytest.skip("no control group can be made here")


@pytest.mark.usefixtures("_grouping")
def test_a_group_has_limits_takes_a_process_and_goes() -> None:
    with control_group(Limits(processes=7)) as group:
        assert group is not None
        (folder,) = [each for each in _groups() if (each / "pids.max").read_text() == "71\n"]
        group.add(os.getpid())
        inside = (folder / "cgroup.procs").read_text().split()
        (folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        assert str(os.getpid()) in inside
    assert folder not in _groups()


@needs_sandbox
@pytest.mark.usefixtures("_grouping")
async def test_a_command_is_in_a_group_and_leaves_none(tmp_path: Path) -> None:
    done = await run(make_commands(tmp_path), "cat /proc/self/cgroup")
    assert "pids:/" in done.output or "0::/" in done.output
    assert not [each for each in _groups() if not (each / "cgroup.procs").read_text()]


def test_without_the_right_to_make_one_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.sandbox.control_group._ROOT", tmp_path)
    with control_group(Limits()) as group:
        assert group is None
