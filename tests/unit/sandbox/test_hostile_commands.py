"""Commands that are made to get at what is not theirs, or at the daemon's time."""

from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.bubblewrap import make_branch
from agentd.sandbox.commands import Command, Commands, CommandSettings
from agentd.sandbox.limits import Limits
from agentd.sandbox.roots import Root
from tests.confined import make_commands, needs_sandbox, run, shell
from tests.lag import measured_lag

pytestmark = needs_sandbox


async def test_a_read_only_root_deep_in_a_writable_one_stays_where_it_is(tmp_path: Path) -> None:
    inner = tmp_path / "workspace" / "sub" / "kept"
    inner.mkdir(parents=True)
    writable = inner / "below" / "it"
    writable.mkdir(parents=True)
    roots = [Root(tmp_path / "workspace"), Root(inner, writable=False), Root(writable)]
    commands = Commands(roots)
    done = await run(commands, "mv sub other; mkdir -p sub/kept; touch other/kept/x sub/y")
    assert done.exit_code == 1
    done = await run(commands, "touch other/kept/x; touch sub/kept/x sub/kept/below/x")
    assert (list(inner.rglob("x")), done.exit_code) == ([], 1)
    assert (tmp_path / "workspace" / "sub" / "y").exists()
    assert (await run(commands, "touch sub/kept/below/it/x")).exit_code == 0


@pytest.mark.parametrize("name", ["home", "a/home"])
@pytest.mark.parametrize("branches", [True, False])
async def test_a_home_inside_the_workspace_does_not_exist_for_commands(
    tmp_path: Path, name: str, branches: bool
) -> None:
    workspace = tmp_path / "workspace"
    home = workspace / name
    (home / "inner").mkdir(parents=True)
    (home / "agentd.toml").write_text("secret")
    (home / "inner" / "file").write_text("open")
    (tmp_path / "link").symlink_to(workspace)
    roots = [Root(workspace), Root(home / "inner"), Root(tmp_path / "link")]
    commands = Commands(roots, CommandSettings(hidden=[home]))
    made = make_branch(tmp_path / "branch", [workspace]) if branches else []
    move = 'python3 -c \'import os; os.rename("{}", "other")\''
    tries = [
        f"cat {home}/inner/file {home}/agentd.toml {tmp_path}/link/{name}/agentd.toml; ls {home}",
        f"{move.format(home)}; {move.format(home.parent)}; touch {home}/x; rmdir {home}",
        "grep -rs secret .",
    ]
    for tried in tries:
        done = await commands.run(shell(tried), made)
        assert "secret" not in done.output, done
        assert (home / "agentd.toml").read_text() == "secret"
    done = await commands.run(shell(tries[0]), made)
    assert "open" in done.output
    assert done.output.endswith("inner\n")


async def test_no_program_can_lend_its_rights(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)
    tries = (
        "import os\n"
        "for make in (lambda: os.chmod('a', 0o4755), lambda: os.fchmod(3, 0o4755),\n"
        "             lambda: os.open('b', os.O_CREAT | os.O_WRONLY, 0o4755),\n"
        "             lambda: os.mknod('c', 0o104755)):\n"
        "  try: make(); print('made')\n"
        "  except PermissionError: print('refused')\n"
    )
    done = await run(commands, f'touch a; chmod 755 a; exec 3<>a; python3 -c "{tries}"')
    assert done.output == "refused\n" * 4
    done = await run(commands, "chmod u+s a; mkdir -m 2755 d; umask 0; mktemp -p . x; ls -l >a")
    assert done.exit_code == 0
    assert all(not path.stat().st_mode & 0o4000 for path in (tmp_path / "workspace").iterdir())


@pytest.mark.parametrize(
    "text",
    [
        (
            "import threading as t, time\nt.stack_size(32768)\n"
            "while True: t.Thread(target=time.sleep, args=(9,), daemon=True).start()"
        ),
        (
            "import mmap, os, time\nm = mmap.mmap(-1, 64 << 20)\n"
            "def touch():\n for at in range(0, len(m), 4096): m[at] = 1\n"
            "touch()\nfor _ in range(100):\n if not os.fork(): touch(); time.sleep(9)\n"
            "time.sleep(9)"
        ),
    ],
    ids=["threads", "shared memory"],
)
async def test_what_is_hard_to_count_does_not_hold_the_loop(tmp_path: Path, text: str) -> None:
    commands = make_commands(tmp_path, limits=Limits(processes=200, memory_mb=1024))
    command = Command(["python3", "-c", text], 3)
    async with measured_lag() as lag:
        done = await commands.run(command)
    assert lag.worst_s < 0.6 * command.timeout_s  # it was as long as the command
    told = f"{done.exceeded} {done.output}"  # by the watch, or by the kernel before it looked
    assert done.timed_out or "200 processes and threads" in told or "start new thread" in told


async def test_input_that_is_not_read_does_not_pile_up(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)
    said = b""

    def hear(piece: bytes) -> None:
        nonlocal said
        said += piece

    async with commands.start(shell("until [ -e go ]; do sleep 0.02; done; wc -c")) as child:
        for _ in range(5):
            with anyio.move_on_after(0.1):
                assert not await child.tell(b"a" * 1_000_000)
        (tmp_path / "workspace" / "go").touch()
        async with anyio.create_task_group() as beside:
            beside.start_soon(child.listen, hear)
            assert await child.tell(b"more")
            await child.hang_up()
            await child.wait()
    assert said == b"1000004\n"


async def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)
    for facts in ({"environment": {"A": "\ud800"}}, {"workdir": Path("/\ud800")}):
        with pytest.raises(ToolError, match="could not be started"):
            await run(commands, "true", **facts)
