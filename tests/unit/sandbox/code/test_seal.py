"""The seal on the state of paused programs."""

import stat
from pathlib import Path

from agentd.sandbox.code.seal import Seal


def test_a_seal_fits_what_it_was_made_for_and_nothing_else(tmp_path: Path) -> None:
    seal = Seal(tmp_path / "code.key")
    made = seal.of("session", "1", "state")
    again = Seal(tmp_path / "code.key")
    assert again.fits(made, "session", "1", "state")
    assert not again.fits(made, "session", "1", "other")
    assert not again.fits(made, "session1", "", "state")
    assert not again.fits("é", "session", "1", "state")
    assert not Seal(tmp_path / "other.key").fits(made, "session", "1", "state")


def test_the_key_is_for_its_owner_only(tmp_path: Path) -> None:
    Seal(tmp_path / "code.key").of("x")
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_bytes()) == 32
