"""diagnostics: the health of every daemon of the home."""

import json
from pathlib import Path

import anyio
import pytest

from agentd.daemon.health_files import HealthFiles
from agentd.daemon.presence import Presence
from agentd.domain.clock import SystemClock
from agentd.domain.health import Wellness
from agentd.domain.ids import DaemonId
from agentd.toolkit.definition import tool_of
from agentd.tools.ops.diagnostics import diagnostics
from tests.desk import desk
from tests.messages_turns import DONE, Answer, Body, Turn, call, script


def test_without_a_daemon(tmp_path: Path) -> None:
    found = diagnostics(HealthFiles(tmp_path, SystemClock()))
    assert (found.state, found.daemons) == (Wellness.FAIL, ())


def test_it_reads_and_answers_a_slash_command() -> None:
    made = tool_of(diagnostics)
    assert made is not None
    assert (made.effect, made.slash, made.group) == ("read", "/diagnostics", "ops")
    assert not made.fields


@pytest.mark.requirement("S3-13")
async def test_the_model_gets_all_checks_of_its_own_daemon_as_json(tmp_path: Path) -> None:
    play = script(call("diagnostics"), DONE)

    async def behave(body: Body) -> Answer:
        looks = (tmp_path / "home/run").glob
        while not list(looks("*.health.json")):  # noqa: ASYNC110 - a file says so
            await anyio.sleep(0.005)
        answer = play(body)
        assert isinstance(answer, Turn)
        return answer

    async with desk(tmp_path, behave=behave, watchdog__first_seconds=0) as at:
        # Another daemon of the home, which has not looked yet.
        with Presence(at.config.run_path, DaemonId("zz-another")):
            task = await at.work()
        (result, _) = await at.results(task)
    told = json.loads(result["content"])
    own, other = told["daemons"]
    assert other["reason"] == "its watchdog has not looked yet"
    names = {each["name"] for each in own["health"]["checks"]}
    assert {"memory", "uptime", "circuit breakers", "event loop", "disk", "database"} <= names
    assert own["health"]["uptime_s"] >= 0
    assert own["health"]["breakers"] == {"anthropic": "closed"}
