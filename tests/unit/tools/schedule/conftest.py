"""A configuration, for what is registered."""

from pathlib import Path

import pytest

from agentd.config import Config, load_config
from agentd.home import make_home


@pytest.fixture
def config(tmp_path: Path) -> Config:
    make_home(tmp_path / "home")
    return load_config(tmp_path / "home")
