"""A model that wants out: every attack of tests/hostile/, through the dispatch of the tools."""

import importlib
import json
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agentd.app_tools import call_tool, make_toolbox
from agentd.config import load_config
from agentd.home import make_home
from agentd.store.store import Store
from agentd.toolkit.definition import Tool
from tests.hostile.attacks import GROUPS, Attack, on_granted_names, on_names
from tests.hostile.nameserver import lying
from tests.hostile.world import KEY, VARIABLE, World, hostile_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    home = tmp_path / "home"
    make_home(home)
    (home / "agentd.toml").write_text(f'[models.anthropic]\napi_key = "{KEY}"\n')
    (home / "agentd.toml").chmod(0o600)
    monkeypatch.setenv("SOME_TOKEN", VARIABLE)
    monkeypatch.setattr(socket, "getaddrinfo", lying(socket.getaddrinfo))
    monkeypatch.setattr(importlib.import_module("agentd.tools.web.web_fetch"), "_TIMEOUT_S", 0.3)
    with hostile_world(tmp_path, home) as made:
        yield made


def test_there_are_enough_attacks() -> None:
    attacks = [attack for make in GROUPS.values() for attack in make()]
    assert len(attacks) >= 200
    assert len({attack.name for attack in attacks}) == len(attacks)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("group", GROUPS)
async def test_no_attack_gets_out(group: str, world: World) -> None:
    assert not await _won(world, list(GROUPS[group]()))


@pytest.mark.timeout(60)
async def test_no_name_leads_a_granted_command_inside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_COMMANDS__NETWORK", "filtered")
    assert not await _won(world, list(on_granted_names()))


async def test_a_name_that_leads_inside_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the owner allows what it leads to, the same name wins, for a command as well."""
    name = "later-0.evil.test"
    allowed = f'["{name}:{world.port}"]'
    monkeypatch.setenv("AGENTD_EGRESS__PRIVATE", allowed)
    monkeypatch.setenv("AGENTD_COMMANDS__NETWORK", "filtered")
    attacks = [each for each in on_names() if f"//{name}:" in each.input["url"]]
    for some in (attacks[1:], list(on_granted_names())):
        assert [*(await _won(world, some)).values()] == [["reached 127.0.0.1"]]


async def test_an_attack_that_gets_out_is_seen(world: World) -> None:
    """Without the sandbox the same attacks win, so the look at the world is worth something."""
    with (world.home / "agentd.toml").open("r+") as file:
        rest = file.read()
        file.seek(0)
        file.write(f'sandbox = "off"\n{rest}')
    commands = [
        "cat @OUTSIDE@/secret.txt",
        "echo taken > @OUTSIDE@/target.txt",
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/@PORT@'",
        "kill -9 @VICTIM@",
    ]
    attacks = [Attack("bash", {"command": command}) for command in commands]
    assert len(await _won(world, attacks)) == len(attacks)


async def _won(world: World, attacks: Sequence[Attack]) -> dict[str, list[str]]:
    """What each attack took, those that took nothing left out."""
    config = load_config(world.home)
    won: dict[str, list[str]] = {}
    async with Store(config.database_path, busy_s=5) as store:
        toolbox = make_toolbox(config, store)
        for attack in attacks:
            tool = toolbox.registry.find(attack.tool)
            assert isinstance(tool, Tool), attack.tool
            raw = json.loads(world.fill(json.dumps(attack.input)))
            result = await call_tool(toolbox, store, tool, raw)
            said = f"{result.content} {result.data} {result.error} {result.next_action_hint}"
            if taken := [*world.taken(said), *_left_behind()]:
                won[attack.name] = taken
    return won


def _left_behind() -> list[str]:
    """Processes that an attack left running: those all sleep for the same long time."""
    left: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if words[:2] == [b"sleep", b"31415"]:
            left.append(f"left process {process.name}")
    return left
