"""kill -9 of a daemon around a command: all of its changes or none, once; no process stays."""

import signal
from pathlib import Path
from typing import Any

import pytest

from agentd.cli.context import open_store
from agentd.config import load_config
from tests.confined import needs_branches, until
from tests.messages_api import MessagesApi
from tests.messages_turns import call, script
from tests.processes import Home, new_home

pytestmark = needs_branches
_COMMAND = """
set -e; n=$(wc -l < count); echo x >> count; mkdir -p a$n/b; echo $n > a$n/b/c
rm -r old; mkdir old; echo $n > old/new; rm gone$n; ln -s count link$n; echo said $n
"""
_TOOLS = """
import os, signal
from pathlib import Path
from agentd.sandbox import merge
from agentd.sandbox.branches import Branches

WORLD, MOMENT, LATER = Path({world!r}), {moment!r}, {later}

def die():
    marker = WORLD / "died"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def wrap(owner, name, before=False):
    original, calls = getattr(owner, name), []
    def wrapped(*arguments):
        calls.append(1)
        if before and len(calls) > LATER:
            die()
        result = original(*arguments)
        if not before:
            die()
        return result
    setattr(owner, name, wrapped)

match MOMENT:
    case "ended":
        wrap(Branches, "_keep", before=True)
    case "recorded":
        wrap(Branches, "_settle", before=True)
    case "merging":
        wrap(merge, "_moved", before=True)
    case "merged":
        wrap(Branches, "_keep")
"""
_CALLS = 3
_MOMENTS = [("ended", 0), ("recorded", 0), ("merging", 1), ("merged", 0)]


@pytest.mark.timeout(120)
async def test_a_command_has_happened_once_wherever_its_daemon_is_killed(tmp_path: Path) -> None:
    """Each daemon finds what the one before has left, and dies at the next moment."""
    turns = [call("exec", command=_COMMAND) for _ in range(_CALLS)]
    async with MessagesApi(script(*turns, call("complete_task", summary="Done."))) as api:
        home = _home(tmp_path, api)
        await home.enqueue("Work.")
        for moment, later in _MOMENTS:
            text = _TOOLS.format(world=str(tmp_path), moment=moment, later=later)
            (home.path / "tools" / "die.py").write_text(text)
            (tmp_path / "died").unlink(missing_ok=True)
            assert (await home.run("run", "--drain", timeout_s=30)).code == -signal.SIGKILL
            if moment != "merging":  # from the outcome on, a merge may be half done
                assert _tree(home.workspace) in [_after(n) for n in range(_CALLS)], moment
        (home.path / "tools" / "die.py").unlink()
        assert (await home.run("run", "--drain", timeout_s=30)).code == 0
        assert _tree(home.workspace) == _after(_CALLS)
        assert await _results(home, "exec") == [f"said {n}" for n in range(_CALLS)]
        assert await _results(home, "complete_task") == ["Task completed: Done."]


@pytest.mark.timeout(60)
@pytest.mark.requirement("S2-23")
async def test_commands_die_with_their_daemon_and_the_next_one_says_so(tmp_path: Path) -> None:
    turns = [
        call("exec", command="echo begun; setsid sleep 65.25 & sleep 65.25", background=True),
        call("exec", command=f"{_COMMAND} (setsid sleep 64.25 &); [ -e go ] || sleep 64.25"),
        call("process", action="list"),
        call("complete_task", summary="Done."),
    ]
    async with MessagesApi(script(*turns)) as api:
        home = _home(tmp_path, api)
        await home.enqueue("Work.")
        async with home.daemon() as daemon:
            await until(lambda: _processes("sleep\x0064.25") == 2)
            assert _processes("sleep\x0065.25") == 2
            daemon.signal(signal.SIGKILL)
            await daemon.ended()
            await until(lambda: not _processes("sleep\x006"))
        assert _tree(home.workspace) == _after(0)
        (home.workspace / "go").touch()
        assert (await home.run("run", "--drain", timeout_s=30)).code == 0
        assert _tree(home.workspace) == {**_after(1), "go": ""}
        assert (await _results(home, "exec"))[1:] == ["said 0"]
        (listed,) = await _results(home, "process")
        assert "(the daemon died, and the process with it): echo begun;" in listed
        assert [path.read_text() for path in home.path.glob("run/processes/*")] == ["begun\n"]


def _after(calls: int) -> dict[str, Any]:
    """The workspace after so many of the commands."""
    found: dict[str, Any] = {"count": "x\n" * calls, "old": None}
    found["old/new" if calls else "old/kept"] = f"{calls - 1}\n" if calls else "0"
    for n in range(_CALLS):
        if n >= calls:
            found[f"gone{n}"] = "3"
            continue
        found |= {f"a{n}": None, f"a{n}/b": None, f"a{n}/b/c": f"{n}\n", f"link{n}": "-> count"}
    return found


def _home(path: Path, api: MessagesApi) -> Home:
    home = new_home(
        path,
        AGENT__MODEL="anthropic:claude-haiku-4-5",
        MODELS__ANTHROPIC__API_KEY="key-1",
        MODELS__ANTHROPIC__BASE_URL=api.url,
        AGENT__ATTEMPT_BASE_SECONDS="0",
        AGENT__MAX_ATTEMPTS="100",
    )
    for name, text in _after(0).items():
        if text is not None:
            (home.workspace / name).parent.mkdir(exist_ok=True)
            (home.workspace / name).write_text(text)
    return home


def _tree(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = None if path.is_dir() else path.read_text()
    return found


async def _results(home: Home, tool: str) -> list[str]:
    async with open_store(load_config(home.path)) as store, store.transaction() as conn:
        rows = await conn.fetch(
            "SELECT body->>'content' AS content FROM events "
            "WHERE kind = 'tool_result' AND body->>'tool' = $tool",
            tool=tool,
        )
    return [row["content"] for row in rows]


def _processes(command: str) -> int:
    wanted, found = command.encode(), 0
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                found += (path / "cmdline").read_bytes().startswith(wanted)
            except OSError:
                continue
    return found
