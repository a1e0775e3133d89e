"""A confined command: what it sees, what it says, and how it ends."""

import os
import platform
import signal
import socket
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.features import Features, explain_failure, without_bwrap
from agentd.sandbox.limits import Limits
from agentd.sandbox.roots import Root
from agentd.sandbox.tree import descendants, marked
from tests.confined import make_commands, needs_sandbox, run, shell, until

pytestmark = needs_sandbox


async def test_a_command_reads_writes_and_fails_as_in_a_shell(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)
    done = await run(commands, "cat > a; pwd; echo wrong >&2; exit 3", stdin=b"text")
    assert (done.exit_code, done.output) == (3, f"{tmp_path}/workspace\nwrong\n")
    assert (tmp_path / "workspace" / "a").read_text() == "text"


async def test_it_sees_a_read_only_system_and_nothing_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    commands = make_commands(tmp_path)
    tried = f"cat {tmp_path}/secret; ls /root /home; cat /etc/shadow; touch /usr/x /etc/x /x /dev/x"
    done = await run(commands, tried)
    said = done.output.splitlines()
    assert len(said) == 8, said
    assert all("No such file" in line or "Read-only" in line for line in said)
    assert (await run(commands, "touch a", read_only=True)).exit_code == 1


async def test_another_root_is_there_as_its_owner_allows(tmp_path: Path) -> None:
    inner, readable = tmp_path / "workspace" / "inner", tmp_path / "readable"
    inner.mkdir(parents=True)
    readable.mkdir()
    (readable / "a").write_text("1")
    own = Root(tmp_path / "workspace")
    commands = Commands([own, Root(inner, writable=False), Root(readable, writable=False)])
    done = await run(commands, f"cat {readable}/a; touch {readable}/b inner/c d")
    assert done.output.count("Read-only file system") == 2
    assert (tmp_path / "workspace" / "d").exists()
    extra = await run(commands, f"touch {tmp_path}/e/f", roots=[Root(_made(tmp_path / "e"))])
    assert extra.exit_code == 0
    assert (tmp_path / "e" / "f").exists()


async def test_its_environment_is_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    commands = make_commands(tmp_path, environment={"PASSED": "1"})
    done = await run(commands, "env | cut -d= -f1 | sort", environment={"ASKED": "2"})
    names = set(done.output.split()) - {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names == {"ASKED", "HOME", "LANG", "PASSED", "PATH", "TERM"}
    # Nor does the list of processes show what it was given.
    async with commands.start(shell("sleep 60", environment={"ASKED": "canary"})) as child:
        await until(lambda: len(descendants(child.pid)) >= 2)
        for pid in [child.pid, *descendants(child.pid)]:
            assert b"canary" not in Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_no_descriptor_of_ours_reaches_it(tmp_path: Path) -> None:
    leaking = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leaking, True)
    try:
        done = await run(make_commands(tmp_path), "ls -l /proc/self/fd | grep -v ' 3 -> /proc/'")
    finally:
        os.close(leaking)
    assert [line.split()[-3] for line in done.output.splitlines()[1:]] == ["0", "1", "2"]


async def test_it_has_no_network_and_no_rights(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = await run(make_commands(tmp_path), f"echo x > /dev/tcp/127.0.0.1/{port}")
    assert done.exit_code
    said = (await run(make_commands(tmp_path), "cat /proc/self/status; cat /proc/net/dev")).output
    facts = dict(line.split(":", 1) for line in said.splitlines() if line.count(":") == 1)
    assert {facts[name].strip() for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert (facts["NoNewPrivs"].strip(), facts["Seccomp"].strip()) == ("1", "2")
    assert "eth0" not in said


_CALLS = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for number, arguments in CALLS.items():
    ctypes.set_errno(0)
    libc.syscall(number, *arguments)
    print(number, errno.errorcode.get(ctypes.get_errno(), "done"))
try:
    socket.socket(40, socket.SOCK_STREAM)
except OSError as error:
    print("vsock", errno.errorcode[error.errno])
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
async def test_system_calls_that_nobody_needs_are_refused(tmp_path: Path) -> None:
    calls = {
        101: [0, 0, 0, 0],  # ptrace(TRACEME)
        250: [0, -1, 1],  # keyctl
        321: [0, 0, 0],  # bpf
        298: [0, 0, 0, 0, 0],  # perf_event_open
        323: [0],  # userfaultfd
        425: [1, 0],  # io_uring_setup
        165: [0, 0, 0, 0, 0],  # mount
        272: [0x10000000],  # unshare(NEWUSER)
        308: [0, 0],  # setns
        56: [0x10000000, 0, 0, 0, 0],  # clone(NEWUSER)
        16: [0, 0x5412, 0],  # ioctl(TIOCSTI)
        135: [0x0040000],  # personality(ADDR_NO_RANDOMIZE)
    }
    commands = make_commands(tmp_path)
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("there is no /usr/bin/python3 to make calls with")
    done = await commands.run(Command([str(python), "-c", _CALLS.replace("CALLS", str(calls))], 10))
    said = dict(line.split() for line in done.output.splitlines())
    assert said == {**{str(number): "EPERM" for number in calls}, "vsock": "EAFNOSUPPORT"}
    # clone3 hides its flags: a program is told that there is none.
    hidden = await commands.run(
        Command([str(python), "-c", _CALLS.replace("CALLS", "{435: [0, 0]}")], 10)
    )
    assert "435 ENOSYS" in hidden.output


async def test_a_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    done = await run(make_commands(tmp_path), "seq 1 200000", most_chars=1000)
    assert done.output.startswith("1\n2\n3\n")
    assert done.output.endswith("199999\n200000\n")
    assert done.cut_chars == len("".join(f"{n}\n" for n in range(1, 200001))) - 1000
    assert f"{done.cut_chars} characters are missing here" in done.output


async def test_a_script_and_an_environment_of_any_length_are_taken(tmp_path: Path) -> None:
    long = {f"V{n}": "x" * 100_000 for n in range(3)}
    done = await run(make_commands(tmp_path), "echo ${#V0} ${#V2}", environment=long)
    assert done.output == "100000 100000\n"
    with pytest.raises(ToolError, match="could not be started"):
        await run(make_commands(tmp_path), "echo " + "x" * 200_000)


async def test_everything_that_it_started_ends_with_it(tmp_path: Path) -> None:
    done = await run(make_commands(tmp_path), "setsid sleep 60 & (sleep 60 &) ; echo $$")
    assert done.exit_code == 0
    assert done.duration_s < 5


async def test_a_command_that_takes_too_long_is_asked_to_end(tmp_path: Path) -> None:
    text = "trap 'echo asked; wait' TERM; setsid bash -c \"trap 'echo me, too' TERM; sleep 60\" & "
    done = await run(make_commands(tmp_path), text + "sleep 60 & wait", timeout_s=0.5)
    assert (done.timed_out, done.exit_code) == (True, None)
    assert "asked" in done.output
    assert "me, too" in done.output


@pytest.mark.requirement("C7")
async def test_what_does_not_end_when_it_is_asked_is_killed_after_5_seconds(
    tmp_path: Path,
) -> None:
    commands = make_commands(tmp_path)
    text = "trap '' TERM; setsid bash -c \"trap '' TERM; sleep 61.5\" & while :; do sleep 1; done"
    done = await run(commands, text, timeout_s=0.3)
    assert done.timed_out
    assert 5 < done.duration_s < 9
    assert not _runs("sleep\x0061.5")


async def test_a_cancelled_command_leaves_nothing(tmp_path: Path) -> None:
    commands = make_commands(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(run, commands, "setsid sleep 62.5 & sleep 62.5")
        await until(lambda: _runs("sleep\x0062.5"))
        group.cancel_scope.cancel()
    assert not _runs("sleep\x0062.5")


async def test_signals_are_told_as_a_shell_tells_them(tmp_path: Path) -> None:
    assert (await run(make_commands(tmp_path), "kill -SEGV $$")).exit_code == 128 + signal.SIGSEGV


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("while :; do sleep 60 & done", "commands.processes"),
        ("f() { f | f & }; f; sleep 5", "commands.processes"),
        (
            "for n in 1 2 3; do (x=$(head -c 40m /dev/zero | tr '\\0' a); sleep 60) & done; wait",
            "commands.memory_mb",
        ),
    ],
)
async def test_a_bomb_ends_with_the_limit_that_it_broke(
    tmp_path: Path, text: str, reason: str
) -> None:
    commands = make_commands(tmp_path, limits=Limits(processes=60, memory_mb=90))
    done = await run(commands, text, timeout_s=50)
    assert done.exit_code is None
    assert done.exceeded is not None
    assert reason in done.exceeded


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("head -c 3m /dev/zero > big", "File size limit exceeded"),
        ("ulimit -n; ulimit -c; ulimit -t", "64\n0\n7"),
        ("head -c 3m /dev/zero > /tmp/big", "No space left"),
        ("dd if=/dev/zero of=/dev/null bs=300M count=1", "exhausted"),
    ],
)
async def test_limits_of_one_process_are_the_kernels(tmp_path: Path, text: str, said: str) -> None:
    limits = Limits(file_mb=2, open_files=64, cpu_s=7, tmp_mb=1, memory_mb=100)
    done = await run(make_commands(tmp_path, limits=limits), text, timeout_s=50)
    assert said in done.output


async def test_a_full_disk_ends_a_command(tmp_path: Path) -> None:
    limits = Limits(disk_least_mb=10_000_000)
    done = await run(make_commands(tmp_path, limits=limits), "sleep 60")
    assert done.exceeded is not None
    assert "commands.disk_least_mb" in done.exceeded


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await run(make_commands(tmp_path), "true", workdir=tmp_path / "workspace" / "nowhere")
    assert caught.value.error_type == "not_found"


async def test_a_machine_that_can_not_confine_refuses_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setattr("agentd.sandbox.commands.bwrap_program", lambda: broken)
    commands = make_commands(tmp_path)
    with pytest.raises(ToolError) as caught:
        await run(commands, "true")
    assert caught.value.error_type == "sandbox_unavailable"
    assert "No permissions to create new namespace" in caught.value.message
    assert 'sandbox = "off"' in str(caught.value.hint)
    assert (await run(commands, "echo ours", trusted=True)).output == "ours\n"


async def test_causes_are_named_with_their_remedy(tmp_path: Path) -> None:
    switch = tmp_path / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns"
    switch.parent.mkdir(parents=True)
    switch.write_text("1\n")
    lacking, remedies = explain_failure("bwrap: setting up uid map: Permission denied", tmp_path)
    assert "AppArmor" in lacking[0]
    assert "apparmor_restrict_unprivileged_userns=0" in remedies[0]
    assert "bwrap is missing" in without_bwrap().lacking[0]
    assert isinstance(without_bwrap(), Features)


class TestWithoutASandbox:
    """sandbox = "off": the same environment, and as much of the limits as there is."""

    async def test_a_plain_command_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
        done = await run(_plain(tmp_path), "pwd; env; ulimit -c; exit 3")
        assert done.exit_code == 3
        assert done.output.startswith(f"{tmp_path}/workspace\n")
        assert "canary" not in done.output

    async def test_what_it_started_ends_with_it_wherever_it_went(self, tmp_path: Path) -> None:
        done = await run(_plain(tmp_path), "setsid sleep 63.5 & (setsid sleep 63.5 &); echo x")
        assert done.output == "x\n"
        await until(lambda: not _runs("sleep\x0063.5"))

    async def test_its_time_and_its_processes_are_limited(self, tmp_path: Path) -> None:
        assert (await run(_plain(tmp_path), "sleep 60", timeout_s=0.2)).timed_out
        done = await run(_plain(tmp_path), "for n in $(seq 99); do sleep 9 & done; wait")
        assert done.exceeded is not None
        assert "commands.processes" in done.exceeded


def _plain(path: Path) -> Commands:
    return make_commands(path, confined=False, limits=Limits(processes=50))


def _runs(command: str) -> bool:
    wanted = command.encode()
    return any(
        wanted in _read(path / "cmdline")
        for path in Path("/proc").iterdir()
        if path.name.isdecimal()
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_process_is_found_by_its_mark() -> None:
    assert marked("AGENTD_COMMAND=nobody") == []
