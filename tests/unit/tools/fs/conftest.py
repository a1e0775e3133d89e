"""A workspace of its own for each test."""

from pathlib import Path

import pytest

from agentd.sandbox.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def workspace(folder: Path) -> Workspace:
    return Workspace(folder)
