"""A parser that hangs, breaks or is taken over is only a parser that gave nothing."""

import importlib
from pathlib import Path

import pytest

from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.tools.web.readable import Readable, readable
from tests.confined import make_commands, needs_sandbox

module = importlib.import_module("agentd.tools.web.readable")

PAGE = "<title>T</title><p>Hello <b>there</b>"
PLAIN = Readable("T", "T\n\nHello there")


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Instead of ours."""
    script = tmp_path / "script.py"
    monkeypatch.setattr(module, "_SCRIPT", script)
    return script


async def made(tmp_path: Path) -> Readable:
    return await readable(PAGE, "https://example.com/", make_commands(tmp_path))


async def test_a_page_as_markdown(tmp_path: Path) -> None:
    assert await made(tmp_path) == Readable("T", "Hello **there**")


@pytest.mark.parametrize(
    "code",
    [
        "os.abort()",
        "sys.exit(1)",
        "1 / 0",
        "os.kill(os.getpid(), 9)",
        "os.close(0); 1 / 0",
        "pass",
        "while True: pass",
    ],
)
async def test_without_it_the_page_is_plain_text(
    code: str, parser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.5)
    parser.write_text(f"import os, sys\n{code}\n")
    assert await made(tmp_path) == PLAIN


@needs_sandbox
async def test_one_that_is_taken_over_reaches_nothing(
    parser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "file").write_text("mine")
    tries = [
        "os.environ['ANTHROPIC_API_KEY']",
        f"open({str(tmp_path / 'secret')!r}).read()",
        "open('file', 'w').write('theirs')",
        "socket.create_connection(('127.0.0.1', 22), 1)",
    ]
    lines = [
        f"try: print({each})\nexcept (OSError, KeyError) as e: print(type(e).__name__)"
        for each in tries
    ]
    parser.write_text("\n".join(["import os, socket", *lines]))
    assert (await made(tmp_path)).text.split() == [
        "KeyError",
        "FileNotFoundError",
        "OSError",
        "ConnectionRefusedError",
    ]


async def test_without_a_workspace_the_page_is_plain_text(tmp_path: Path) -> None:
    commands = Commands([Root(tmp_path / "nowhere")])
    assert await readable(PAGE, "https://example.com/", commands) == PLAIN
