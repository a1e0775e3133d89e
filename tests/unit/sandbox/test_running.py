"""One way to run a command, for whoever wants one: how it starts and how it ends."""

import ast
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import agentd
from agentd.daemon.gate import Gate
from agentd.sandbox.host_process import run_on_host, small_environment
from tests.confined import make_commands, shell, until

_PACKAGE = Path(agentd.__file__).parent
_STARTS = {"open_process", "run_process", "Popen", "create_subprocess_exec", "posix_spawn"}
_STUBBORN = "trap '' TERM; (setsid sleep 31.4 & echo $$ $! > pids; wait; sleep 31.4)"


@pytest.mark.requirement("C7")
def test_commands_are_started_in_one_place() -> None:
    """Beside it there are servers and interpreters, which one talks to in a protocol, and the
    attacks of `agentd sandbox prove`, which are what is to be ended.
    """
    found = {
        path.relative_to(_PACKAGE).as_posix()
        for path in _PACKAGE.rglob("*.py")
        if not path.is_relative_to(_PACKAGE / "sandbox" / "battery")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in _STARTS
    }
    talked_to = {"connectors/stdio.py", "sandbox/code/typescript.py"}
    assert found - talked_to == {"sandbox/running.py"}


async def of_a_tool(folder: Path, text: str) -> None:
    done = await make_commands(folder, confined=False).run(shell(text, timeout_s=0.5))
    assert done.timed_out


async def on_the_host(folder: Path, text: str) -> None:
    (folder / "workspace").mkdir()
    done = await run_on_host(
        ["/bin/sh", "-c", text],
        environment=small_environment(),
        folder=folder / "workspace",
        timeout_s=0.5,
        most_chars=100,
    )
    assert done.timed_out


async def as_a_gate(folder: Path, text: str) -> None:
    (folder / "workspace").mkdir()
    said = await Gate(folder / "workspace", timeout_s=0.5).ask(text)
    assert said is not None
    assert "took longer than" in said


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("way", [of_a_tool, on_the_host, as_a_gate])
async def test_what_heeds_no_term_is_killed_with_what_left_its_group(
    way: Callable[[Path, str], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.sandbox.running._PATIENCE_S", 0.1)
    await way(tmp_path, _STUBBORN)
    first, left = map(int, (tmp_path / "workspace" / "pids").read_text().split())
    await until(lambda: not _lives(first) and not _lives(left))


@pytest.mark.requirement("C7")
async def test_each_has_a_group_and_a_session_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    text = "cut -d' ' -f5,6 /proc/self/stat; kill -TERM 0; sleep 31.4"
    plain = await run_on_host(
        ["/bin/sh", "-c", text],
        environment=small_environment(),
        folder=tmp_path,
        timeout_s=10,
        most_chars=100,
    )
    group, session = map(int, plain.output.split())
    assert group == session
    assert group not in (os.getpgid(0), os.getsid(0))
    assert plain.exit_code == 128 + signal.SIGTERM


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
