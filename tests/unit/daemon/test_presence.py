"""Who lives is seen in a lock that the kernel drops."""

import stat
from pathlib import Path

from agentd.daemon.presence import Presence, dead_ones, forget, is_alive
from agentd.domain.ids import DaemonId

_ONE, _TWO = DaemonId("daemon-1"), DaemonId("daemon-2")


def test_a_daemon_is_alive_while_it_holds_its_lock(tmp_path: Path) -> None:
    assert not is_alive(tmp_path, _ONE)
    with Presence(tmp_path, _ONE):
        assert is_alive(tmp_path, _ONE)
        assert not is_alive(tmp_path, _TWO)
        (path,) = tmp_path.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not is_alive(tmp_path, _ONE)
    assert dead_ones(tmp_path) == {_ONE}  # until its tasks were seen to


def test_the_file_of_a_dead_daemon_says_nothing_without_its_lock(tmp_path: Path) -> None:
    (tmp_path / f"{_ONE}.alive").touch()
    assert not is_alive(tmp_path, _ONE)
    forget(tmp_path, _ONE)
    assert not list(tmp_path.iterdir())
