"""A workspace of its own for each test."""

from pathlib import Path

import pytest

from agentd.domain.run import CallKey
from agentd.sandbox.edits import Edits
from agentd.sandbox.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def workspace(folder: Path) -> Workspace:
    return Workspace(folder)


@pytest.fixture
def edits(workspace: Workspace, tmp_path: Path) -> Edits:
    """Of one call in a run."""
    return Edits(workspace, tmp_path / "edits", CallKey("task/call"))
