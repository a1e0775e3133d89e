"""A parser that hangs, breaks or floods is only a parser that gave nothing."""

from pathlib import Path

import pytest

from agentd.sandbox.apart import parse_apart


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


async def made(script: Path, code: str, *, timeout_s: float = 5, most_bytes: int = 100) -> object:
    script.write_text(f"import os, sys, time\n{code}\n")
    return await parse_apart(script, b"given", "more", timeout_s=timeout_s, most_bytes=most_bytes)


async def test_what_it_makes_of_its_input(script: Path) -> None:
    assert await made(script, "print(sys.stdin.read(), sys.argv[1], end='')") == b"given more"


async def test_what_is_too_much_is_cut(script: Path) -> None:
    assert await made(script, "print('x' * 1000)", most_bytes=3) == b"xxx"


@pytest.mark.parametrize(
    "code", ["os.abort()", "sys.exit(1)", "1 / 0", "os.kill(os.getpid(), 9)", "os.close(0); 1 / 0"]
)
async def test_one_that_breaks_gives_nothing(code: str, script: Path) -> None:
    assert await made(script, code) is None


async def test_one_that_does_not_listen_gives_nothing(script: Path) -> None:
    script.write_text("raise SystemExit(1)")
    assert await parse_apart(script, b"x" * 5_000_000, timeout_s=5, most_bytes=9) is None


async def test_one_that_hangs_is_ended(script: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    assert await made(script, code, timeout_s=0.5) is None
    assert not note.exists() or not Path("/proc", note.read_text()).exists()


async def test_it_gets_no_variable_of_the_daemon(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    assert await made(script, "print('ANTHROPIC_API_KEY' in os.environ, end='')") == b"False"
