"""Commands outside the sandbox: which ones, how they start, and how they end."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.finish import Finished
from agentd.sandbox.host_commands import HostCommand, HostCommands, SshPlace
from agentd.sandbox.ssh import SshAccess
from tests.sshd import Sshd, running_sshd

ODD = ("a b", "$HOME", "it's", "x;y", "`id`", "\\n", "*", "", "é", "-n", "&&", "a\tb", '"')


def commands(folder: Path, *run: str, ssh: SshPlace | None = None) -> HostCommands:
    return HostCommands([HostCommand(("deploy", "--staging"), run, 60, ssh)], folder)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh") / "d") as started:
        yield started


def place(sshd: Sshd, key: Path | None = None) -> SshPlace:
    access = SshAccess(key or sshd.key, [sshd.known_hosts])
    return SshPlace("127.0.0.1", sshd.port, sshd.user, access)


@pytest.mark.requirement("S2-24")
@pytest.mark.parametrize(
    "line", ["deploy --staging", "  deploy   '--staging' ", "dep\\loy --staging"]
)
def test_a_line_that_is_the_command_word_for_word_is_found(line: str, tmp_path: Path) -> None:
    assert commands(tmp_path, "true").find(line) is not None


@pytest.mark.requirement("S2-24")
@pytest.mark.parametrize(
    "line",
    [
        "deploy",
        "deploy --staging now",
        "deploy --staging; id",
        "deploy --staging;",
        "deploy --staging && id",
        "deploy --staging | sh",
        "deploy --staging > x",
        "deploy --staging\nid",
        "deploy\n--staging",
        "deploy --staging $(id)",
        "deploy --staging # a comment",
        "X=1 deploy --staging",
        "/usr/bin/deploy --staging",
        "sudo deploy --staging",
        "Deploy --staging",
        "'deploy --staging'",
        "deploy '--staging",
        "",
    ],
)
def test_any_other_line_is_not(line: str, tmp_path: Path) -> None:
    assert commands(tmp_path, "true").find(line) is None


async def run(
    given: HostCommands, stdin: bytes = b"", timeout_s: float = 10, most: int = 1000
) -> Finished:
    found = given.find("deploy --staging")
    assert found is not None
    return await given.run(found, stdin=stdin, timeout_s=timeout_s, most_chars=most)


async def test_it_runs_here_without_a_shell_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    done = await run(commands(tmp_path, "printf", "%s|", *ODD))
    assert (done.exit_code, done.output) == (0, "".join(f"{word}|" for word in ODD))
    done = await run(commands(tmp_path, "env"))
    assert "sk-canary" not in done.output
    done = await run(commands(tmp_path, "sh", "-c", "pwd; cat; echo wrong >&2; exit 3"), b"in\n")
    assert (done.exit_code, done.output) == (3, f"{tmp_path}\nin\nwrong\n")
    with pytest.raises(ToolError, match="no-such-program"):
        await run(commands(tmp_path, "no-such-program"))


@pytest.mark.requirement("S2-24")
async def test_it_runs_over_ssh_and_every_word_arrives_as_it_is(sshd: Sshd, tmp_path: Path) -> None:
    words = commands(tmp_path, "printf", "%s|", *ODD, ssh=place(sshd))
    done = await run(words)
    assert (done.exit_code, done.output) == (0, "".join(f"{word}|" for word in ODD))
    shell = commands(
        tmp_path, "sh", "-c", 'test -n "$SSH_CONNECTION" && cat; exit 3', ssh=place(sshd)
    )
    done = await run(shell, b"in\n")
    assert (done.exit_code, done.output) == (3, "in\n")


async def test_over_ssh_neither_another_key_nor_another_host_is_taken(
    sshd: Sshd, tmp_path: Path
) -> None:
    done = await run(commands(tmp_path, "true", ssh=place(sshd, sshd.stranger)))
    assert (done.exit_code, "Permission denied" in done.output) == (255, True)
    (tmp_path / "empty").touch()
    nowhere = SshPlace("127.0.0.1", sshd.port, sshd.user, SshAccess(sshd.key, [tmp_path / "empty"]))
    done = await run(commands(tmp_path, "true", ssh=nowhere))
    assert (done.exit_code, "Host key verification failed" in done.output) == (255, True)


async def test_when_its_time_is_over_all_of_it_ends(tmp_path: Path) -> None:
    line = "echo begun; (sleep 50 & echo $! > child; wait) & wait"
    done = await run(commands(tmp_path, "sh", "-c", line), timeout_s=1)
    assert (done.exit_code, done.timed_out, done.output) == (None, True, "begun\n")
    await gone(int((tmp_path / "child").read_text()))


async def test_what_heeds_no_term_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.sandbox.running._PATIENCE_S", 0.1)
    line = "trap '' TERM; echo $$ > pid; while true; do sleep 0.05; done"
    done = await run(commands(tmp_path, "sh", "-c", line), timeout_s=0.5)
    assert done.timed_out
    await gone(int((tmp_path / "pid").read_text()))


async def test_what_it_leaves_behind_does_not_keep_us(tmp_path: Path) -> None:
    done = await run(commands(tmp_path, "sh", "-c", "sleep 50 & echo $! > child; echo done"))
    assert (done.exit_code, done.timed_out, done.output) == (0, False, "done\n")
    await gone(int((tmp_path / "child").read_text()))


async def test_of_a_long_output_both_ends_are_kept(tmp_path: Path) -> None:
    done = await run(commands(tmp_path, "seq", "100000"), most=100)
    assert done.output.startswith("1\n2\n3\n")
    assert done.output.endswith("99999\n100000\n")
    assert done.cut_chars == len("".join(f"{n}\n" for n in range(1, 100001))) - 100


async def gone(pid: int) -> None:
    with anyio.fail_after(5):
        while await lives(pid):  # noqa: ASYNC110 - a process of nobody's
            await anyio.sleep(0.01)


async def lives(pid: int) -> bool:
    try:
        state = await anyio.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"
