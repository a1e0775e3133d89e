"""Where the home is, and making one."""

import stat
from pathlib import Path

import platformdirs
import pytest

from agentd.domain.errors import ConfigError
from agentd.home import find_home, make_home, require_home


def test_the_order_in_which_it_is_looked_for(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "src"
    deep.mkdir(parents=True)
    (tmp_path / "project" / ".agentd").mkdir()
    named = {"AGENTD_HOME": str(tmp_path / "named")}
    assert find_home(tmp_path / "said", named, deep) == tmp_path / "said"
    assert find_home(None, named, deep) == tmp_path / "named"
    assert find_home(None, {}, deep) == tmp_path / "project" / ".agentd"
    data = platformdirs.user_data_path("agentd", appauthor=False)
    assert find_home(None, {}, tmp_path) == data


def test_a_folder_that_is_no_home_is_refused_with_the_command_that_makes_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError) as caught:
        require_home(tmp_path)
    assert f"agentd --home {tmp_path} init" in (caught.value.hint or "")


def test_making_it_twice_changes_nothing_and_mends_modes(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    made = make_home(home)
    assert {path.name for path in made} >= {"agentd.toml", "workspace", "run", "tools", "mcp.json"}
    (home / "run").chmod(0o755)
    (home / "agentd.toml").chmod(0o644)
    assert make_home(home) == []
    assert stat.S_IMODE((home / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "agentd.toml").stat().st_mode) == 0o600
    assert require_home(home) == home
