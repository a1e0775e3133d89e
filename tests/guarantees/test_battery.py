"""Every attack of `agentd sandbox prove` is stopped, and one that is not stopped is reported."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest

from agentd.sandbox.battery.attacks import ATTACKS, KINDS, Attack
from agentd.sandbox.battery.prove import Bounds, Outcome, Proof, Verdict
from agentd.sandbox.commands import Command, Commands
from agentd.sandbox.finish import Finished
from agentd.sandbox.roots import Root
from agentd.store.files import silent

# What an unconfined process can do, whoever runs it, without harm to the machine.
_SURE = {
    "read_user_home",
    "read_agentd_home",
    "list_outside",
    "write_outside",
    "write_through_symlink",
    "link_outside",
    "climb",
    "proc_root",
    "tcp_loopback",
    "udp",
    "abstract_socket",
    "path_socket",
    "signals",
    "list_processes",
    "environment_of_another",
    "stay_behind",
    "spin",
    "new_privileges",
    "large_file",
    "environment",
    "open_descriptors",
    "shared_memory",
    "host_name",
}
_SMALL = Bounds(processes=8, memory_mb=64, file_mb=64, tmp_mb=16, open_files=64, spin_s=2)


class Plain(Commands):
    """No sandbox at all: the same command as a plain process, which inherits everything."""

    async def run(self, command: Command) -> Finished:
        run = partial(
            subprocess.run,
            list(command.argv),
            cwd=command.workdir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            close_fds=False,
        )
        done = await anyio.to_thread.run_sync(run)
        return Finished(done.returncode, done.stdout.decode(errors="replace"), 0, False, 0)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of agentd, with a workspace; and a home of the user beside it."""
    made = tmp_path / "agentd"
    for folder in (made / "workspace", tmp_path / "user"):
        folder.mkdir(parents=True)
    (made / "agentd.toml").write_text("# settings")
    (made / "agentd.duckdb").write_text("no database")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return made


async def prove(
    commands: Commands, home: Path, attacks: Sequence[Attack], bounds: Bounds | None = None
) -> list[Outcome]:
    proof = Proof(commands, home, home / "workspace", bounds or Bounds())
    return await proof.run(silent, attacks)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_attack_is_stopped(kind: str, home: Path) -> None:
    commands = Commands([Root(home / "workspace")])
    outcomes = await prove(commands, home, [each for each in ATTACKS if each.kind == kind])
    assert outcomes
    loose = [f"{each.name}: {each.verdict}: {each.evidence}" for each in outcomes if not each.holds]
    assert not loose, "\n".join(loose)


@pytest.mark.timeout(60)
async def test_without_a_sandbox_they_escape(home: Path) -> None:
    attacks = [each for each in ATTACKS if each.name in _SURE]
    assert len(attacks) == len(_SURE)
    outcomes = await prove(Plain([Root(home / "workspace")]), home, attacks, _SMALL)
    missed = [each.name for each in outcomes if each.verdict is not Verdict.ESCAPED]
    assert not missed, "attacks that would not notice a missing sandbox"
    assert not any(each.holds for each in outcomes)


async def test_a_sandbox_with_a_hole_is_caught(home: Path) -> None:
    commands = Commands([Root(home / "workspace"), Root(home)])
    attacks = [each for each in ATTACKS if each.kind == "files"]
    outcomes = await prove(commands, home, attacks)
    escaped = {each.name for each in outcomes if not each.holds}
    wanted = {"read_agentd_home", "list_outside", "write_outside", "write_through_symlink", "climb"}
    assert escaped >= wanted
    assert not escaped & {"read_user_home", "read_shadow", "make_device"}


async def test_an_attack_that_did_not_run_proves_nothing(home: Path) -> None:
    class Broken(Commands):
        async def run(self, command: Command) -> Finished:
            del command
            return Finished(127, "python: not found", 0, False, 0)

    broken = Broken([Root(home / "workspace")])
    outcomes = await prove(broken, home, ATTACKS[:2])
    assert [each.verdict for each in outcomes] == [Verdict.UNCLEAR, Verdict.UNCLEAR]
    assert not any(each.holds for each in outcomes)


async def test_nothing_is_left_behind(home: Path) -> None:
    variables = set(os.environ)
    commands = Commands([Root(home / "workspace")])
    attacks = [each for each in ATTACKS if each.name in ("write_through_symlink", "stay_behind")]
    await prove(commands, home, attacks)
    assert not list((home / "workspace").iterdir())
    assert not list((home / "run").iterdir())
    assert not list((home.parent / "user").iterdir())
    assert not list(Path("/dev/shm").glob("agentd-prove-*"))
    assert set(os.environ) == variables
    assert not [words for words in children() if b"agentd-prove" in words]


def children() -> list[bytes]:
    """The command lines of the processes that we have started."""
    found: list[bytes] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append((entry / "cmdline").read_bytes())
    return found
