"""The command line in this process: `agentd(...)` runs it and keeps what it printed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentd.cli.main import invoke


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Agentd = Callable[..., Done]


@pytest.fixture
def agentd(capsys: pytest.CaptureFixture[str]) -> Agentd:
    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = invoke(list(arguments))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agentd: Agentd) -> Path:
    """A home that the commands find by AGENTD_HOME."""
    path = tmp_path / "home"
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTD_HOME", str(path))
    assert agentd("init").code == 0
    return path
