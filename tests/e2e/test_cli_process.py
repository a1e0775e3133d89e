"""The command line as a process: imports, pipes, signals, terminals, the shell's completion."""

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.processes import Home, new_home

_SLOW = '[[turn]]\ndelay_s = 60\n[[turn.call]]\ntool = "complete_task"\n'
_QUICK = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_LIST_MODULES = """
import sys
from agentd.cli.main import invoke
code = invoke(sys.argv[1:])
print("MODULES", *sorted(sys.modules))
sys.exit(code)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "quick.toml").write_text(_QUICK)
    (tmp_path / "slow.toml").write_text(_SLOW)
    return new_home(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["--help"], {"anthropic", "mcp", "openai", "httpx2", "aiohttp", "agentd.app"}),
        (
            ["enqueue", "x"],
            {"anthropic", "mcp", "httpx2", "aiohttp", "rich", "structlog", "agentd.app"},
        ),
        (["fs", "ls", "."], {"anthropic", "mcp", "openai", "httpx2", "pypdf", "html_to_markdown"}),
    ],
)
def test_what_is_used_most_imports_little(
    arguments: list[str], forbidden: set[str], home: Home
) -> None:
    done = subprocess.run(
        [home.command()[0], "-c", _LIST_MODULES, *arguments],
        env=home.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(done.stdout.rsplit("MODULES", 1)[1].split())
    assert "agentd.cli.main" in modules
    assert not forbidden & modules


async def test_a_closed_pipe_is_no_error(home: Home) -> None:
    for number in range(3):
        await home.enqueue(f"Task {number}.")
    command = " ".join(home.command("tools", "schema"))
    done = await anyio.run_process(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"], env=home.environment, check=False
    )
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize("command", ["watch", "wait"])
async def test_ctrl_c_while_following_is_130_and_no_traceback(command: str, home: Home) -> None:
    task_id = await home.enqueue("Wait for me.")
    arguments = ["task", "watch", task_id] if command == "watch" else ["enqueue", "x", "--wait"]
    async with await anyio.open_process(home.command(*arguments), env=home.environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        await process.stdout.receive()  # it follows now
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(10):
            code = await process.wait()
        errors = b"".join([chunk async for chunk in process.stderr])
    assert code == 130
    assert b"Traceback" not in errors
    assert not list((home.path / "run").glob("watch-*"))


async def test_wait_follows_a_task_that_a_daemon_works(tmp_path: Path, home: Home) -> None:
    async with home.daemon():
        good = await home.run(
            "enqueue", "x", "--wait", "--model", f"scripted:{tmp_path}/quick.toml"
        )
        bad = await home.run(
            "enqueue", "x", "--wait", "--model", "scripted:/no/such/file", "--json"
        )
    assert good.code == 0
    assert good.out.strip().endswith("Done.")
    assert "No daemon" not in good.err
    assert bad.code == 1
    last = json.loads(bad.out.splitlines()[-1])
    assert last["task"]["state"] == "failed"
    assert "/no/such/file" in last["task"]["error"]


async def test_following_without_a_daemon_says_that_nobody_works(home: Home) -> None:
    task_id = await home.enqueue("x")
    async with await anyio.open_process(
        home.command("task", "watch", task_id), env=home.environment
    ) as process:
        assert process.stderr is not None
        with anyio.fail_after(10):
            assert b"start one: agentd run" in await process.stderr.receive()
        process.kill()


def _on_terminal(home: Home, *words: str) -> bytes:
    """What a terminal is sent."""
    leader, follower = pty.openpty()
    environment = {**home.environment, "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(
        home.command(*words), env=environment, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        process.wait(15)
    os.close(leader)
    return shown


@pytest.mark.parametrize("words", [("--json",), ()])
def test_what_a_file_holds_does_not_steer_the_terminal(home: Home, words: tuple[str, ...]) -> None:
    nasty = "\x1b]0;own\x07\x9b2J\n"
    (home.path / "workspace" / "nasty").write_text(nasty)
    for tool in (("read", "nasty"), ("read", "\x1b]0;own\x07"), ("grep", "own")):
        shown = _on_terminal(home, "fs", *tool, *words)
        assert b"own" in shown
        assert b"\x1b]" not in shown
        assert "\x9b".encode() not in shown
    piped = subprocess.run(
        home.command("fs", "read", "nasty"), env=home.environment, capture_output=True, check=True
    )
    assert nasty.strip().encode() in piped.stdout


def test_a_terminal_gets_colour_and_a_pipe_does_not(home: Home) -> None:
    subprocess.run(home.command("enqueue", "x"), env=home.environment, check=True, timeout=15)
    piped = subprocess.run(
        home.command("task", "list"), env=home.environment, capture_output=True, check=True
    )
    assert b"\x1b[" not in piped.stdout
    shown = _on_terminal(home, "task", "list")
    assert b"\x1b[" in shown
    assert b"pending" in shown


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("agentd ta", "task"),
        ("agentd enqueue x --priority h", "high"),
        ("agentd fs re", "read"),
        ("agentd task create x --priority l", "low"),
        ("agentd tools call complete_", "complete_task"),
    ],
)
def test_the_shell_completes_commands_options_and_choices(
    words: str, offered: str, home: Home
) -> None:
    environment = {
        **home.environment,
        "_AGENTD_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "from agentd.cli.main import main; main()"
    done = subprocess.run(
        [home.command()[0], "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"plain,{offered}" in done.stdout.split()


async def test_python_m_agentd_is_agentd(home: Home) -> None:
    done = await home.run("--version")
    assert (done.code, done.out) == (0, "agentd, version 0.1.0\n")
