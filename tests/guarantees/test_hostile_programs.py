"""A hostile program in each language: none gets out, and none is taken for what it is not."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.sandbox.code.program import (
    Ended,
    Function,
    Interpreter,
    Limits,
    Paused,
    Setting,
)
from agentd.sandbox.code.python import PythonCode
from agentd.sandbox.code.typescript import TypeScriptCode, find_deno
from tests.hostile.programs import IMITATIONS, PYTHON, TYPESCRIPT

LIMITS = Limits(run_s=3)
DENO = """(() => {{
  const anything = new Proxy(() => undefined, {{
    get: (_, name) => typeof name === "symbol" ? undefined : anything,
    apply: () => undefined,
    construct: () => ({{}}),
  }});
  return anything;
}})()"""
deno = find_deno()
needs_deno = pytest.mark.skipif(deno is None, reason="deno is not installed (extra: deno)")


class World:
    """What programs look for, and whether one of them has reached it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret.json"
        self.secret.write_text('"CANARY-FILE"')
        self.made = folder / "made"
        self.visits = 0
        self.port = 0

    def filled(self, code: str) -> str:
        return code.format(secret=self.secret, made=self.made, folder=self.folder, port=self.port)

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        self.visits += 1
        async with stream:
            await stream.send(b"CANARY-NET")

    def unharmed(self) -> bool:
        return (
            not self.made.exists()
            and self.secret.read_text() == '"CANARY-FILE"'
            and len(list(self.folder.iterdir())) == 1
            and self.visits == 0
        )


@asynccontextmanager
async def world_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setenv("AGENTD_HIDDEN", "CANARY-ENV")
    (folder / "world").mkdir()
    world = World(folder / "world")
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        world.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, world.serve)
        yield world
        group.cancel_scope.cancel()


async def run(interpreter: Interpreter, code: str) -> tuple[str, int]:
    """Everything that came out of a program, and how many calls it made."""
    setting = Setting({"look": Function("look", {})}, LIMITS, seed="x")
    async with interpreter.open(setting) as program:
        step = await program.start(code)
        if isinstance(step, Paused):
            return program.printed, len(step.asked)
        given = json.dumps(step.value) if isinstance(step, Ended) else step.message
        return program.printed + given, 0


async def escaped(
    interpreter: Interpreter, attacks: Mapping[str, str], world: World
) -> dict[str, Any]:
    """The attacks that have succeeded, with what they got."""
    found: dict[str, Any] = {}
    for name, code in attacks.items():
        text, calls = await run(interpreter, world.filled(code))
        if "CANARY" in text or calls or not world.unharmed():
            found[name] = text
    return found


async def test_no_python_program_gets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(PYTHON) >= 60
    python = PythonCode(processes=1)
    try:
        async with world_of(tmp_path, monkeypatch) as world:
            assert await escaped(python, PYTHON, world) == {}
    finally:
        await python.aclose()


@needs_deno
@pytest.mark.timeout(90)
async def test_no_typescript_program_gets_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deno is not None
    assert len(TYPESCRIPT) >= 60
    # Without the name Deno most of Node's modules do not even load, so these bring one.
    attacks = {
        name: f"globalThis.Deno = {DENO}; {code}" if name.startswith("node ") else code
        for name, code in TYPESCRIPT.items()
    }
    async with world_of(tmp_path, monkeypatch) as world:
        assert await escaped(TypeScriptCode(deno), attacks, world) == {}


@needs_deno
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", IMITATIONS)
async def test_what_a_program_prints_is_never_taken_for_a_call(name: str) -> None:
    assert deno is not None
    text, calls = await run(TypeScriptCode(deno), IMITATIONS[name])
    assert calls == 0
    # A secret is 32 hexadecimal digits; the program printed none, so none may come out of it.
    assert not any(len(word) == 32 and word.strip("0") for word in _hexadecimal(text)), text


def _hexadecimal(text: str) -> list[str]:
    return "".join(each if each in "0123456789abcdef" else " " for each in text).split()
