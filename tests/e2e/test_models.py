"""Real processes that ask a server of Chat Completions; the examples of docs/models.md."""

import shlex
import signal
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentd.config import load_config
from tests.chat_api import ChatApi, chat_script
from tests.desk import always
from tests.e2e.test_documents import blocks, commands
from tests.messages_turns import DONE, Behaviour, Call, Failure, Turn, call
from tests.processes import Home, new_home

DOWN = Failure(503, "server_overloaded", "Overloaded")


@asynccontextmanager
async def home_with(
    path: Path, behave: Behaviour, **variables: str
) -> AsyncIterator[tuple[Home, ChatApi]]:
    """A home whose model is a local server without a key."""
    async with ChatApi(behave, needs_key=False) as api:
        yield (
            new_home(
                path,
                AGENT__MODEL="openai:test-model",
                MODELS__OPENAI__BASE_URL=api.base_url,
                MODELS__RETRY_BASE_SECONDS="0.001",
                LOG__FORMAT="json",
                **variables,
            ),
            api,
        )
        assert not api.violations, api.violations


@pytest.mark.requirement("S2-40")
async def test_a_task_is_worked_through_chat_completions(tmp_path: Path) -> None:
    turns = [
        Turn("I look first.", [Call("ls", {"path": "."}), Call("read", {"path": "no.txt"})]),
        Turn(calls=[Call("write", {"path": "a.txt", "content": "1"})], failures=[DOWN]),
        DONE,
    ]
    async with home_with(tmp_path, chat_script(*turns)) as (home, api):
        task_id = await home.enqueue("Write a file.")
        done = await home.run("run", "--once")
        assert done.code == 0, done.err
        viewed = await home.task(task_id)
        history = await home.run("session", "history", viewed["session_id"])
    assert viewed["state"] == "completed"
    assert (home.workspace / "a.txt").read_text() == "1"
    assert "model_call_failed" in history.out
    assert "no price is known" in done.err
    results = [m["content"] for m in api.requests[1]["messages"] if m["role"] == "tool"]
    assert len(results) == 2
    assert results[1].startswith("ERROR: ")
    schemas = [tool["function"]["parameters"] for tool in api.requests[0]["tools"]]
    assert {schema["type"] for schema in schemas} == {"object"}


async def test_a_stopping_daemon_does_not_wait_for_a_provider_that_rests(tmp_path: Path) -> None:
    settings = {"MODELS__BREAKER_THRESHOLD": "1", "MODELS__BREAKER_COOLDOWN_SECONDS": "3600"}
    async with home_with(tmp_path, always(DOWN), **settings) as (home, _):
        task_id = await home.enqueue("Wait.")
        async with home.daemon() as daemon:
            await daemon.logged("waiting for the provider")
            daemon.signal(signal.SIGTERM)
            assert await daemon.ended() == 0
        viewed = await home.task(task_id)
    assert viewed["state"] == "pending"


async def test_an_outage_is_survived_with_the_second_model(tmp_path: Path) -> None:
    script = tmp_path / "second.toml"
    script.write_text(
        '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "2" }\n'
    )
    fallback = {"MODELS__FALLBACK": f"scripted:{script}"}
    async with home_with(tmp_path, always(DOWN), **fallback) as (home, api):
        await home.enqueue("Go on.", "--title", "Here.")
        done = await home.run("run", "--once")
        listed = await home.run("task", "list", "--state", "completed", "--json")
    assert "another model is asked" in done.err
    assert "Here." in listed.out
    assert api.answered == 5


async def test_the_commands_of_the_guide_to_models(tmp_path: Path) -> None:
    async with home_with(tmp_path, chat_script(call("ls", path="."), DONE)) as (home, _):
        for line in commands("docs/models.md"):
            done = await home.run(*shlex.split(line)[1:])
            assert done.code == 0, done.err
        assert (await home.run("run", "--drain")).code == 0
        listed = await home.run("task", "list", "--state", "completed", "--json")
    assert "openai:qwen3-8b" in listed.out


def test_the_settings_that_the_guide_shows_are_settings(tmp_path: Path) -> None:
    home = new_home(tmp_path).path
    shown = blocks("docs/models.md", "toml")
    assert len(shown) == 3
    for text in shown:
        (home / "agentd.toml").write_text(text)
        config = load_config(home)
        assert set(tomllib.loads(text)) <= {"agent", "models"}
        assert config.sources
