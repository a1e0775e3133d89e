"""A server may do what it likes: it is reported, tried again, and harms nobody else."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream

from agentd.connectors.failures import ServerFailed
from agentd.connectors.proxy import find_remote
from agentd.connectors.server import McpServer, State
from agentd.connectors.specs import ServerSpec
from agentd.connectors.stdio import LastWords
from agentd.domain.errors import ToolError
from tests.mcp_desk import marked, servers, spec, state, until

pytestmark = pytest.mark.timeout(20)


def _text(answer: Any) -> str:
    text: str = answer.content[0].text
    return text


@pytest.mark.requirement("S4-19", "S4-21", "S4-23")
async def test_its_tools_are_listed_and_called(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        server = mcp.get("plain")
        assert _text(await server.call("echo", {"text": "hi"})) == "echo: hi"
        assert server.state is State.READY
        assert [tool.name for tool in mcp.remote_tools()][:2] == [
            "plain__die",
            "plain__dotted_name_x",
        ]
    assert server.state is State.STOPPED


async def test_it_gets_a_minimal_environment_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with servers(tmp_path, spec(env={"OWN": "1"})) as mcp:
        environment = json.loads(_text(await mcp.get("plain").call("environment", {})))
    assert "ANTHROPIC_API_KEY" not in environment
    assert environment["OWN"] == "1"
    assert set(environment) <= {
        *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER", "OWN", "LC_CTYPE")
    }


async def test_all_pages_are_read(tmp_path: Path) -> None:
    async with servers(tmp_path, spec("paged")) as mcp:
        await mcp.get("paged").ready()
        assert len(mcp.remote_tools()) == 9


async def test_tools_that_change_are_listed_again(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        before = mcp.version
        await mcp.get("plain").call("grow", {})
        await until(lambda: mcp.get("plain").tool("grown"))
        assert mcp.version > before


async def test_a_banner_is_forgiven(tmp_path: Path) -> None:
    async with servers(tmp_path, spec("banner")) as mcp:
        await mcp.get("banner").ready()


@pytest.mark.requirement("S4-22")
@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("hang", "does not answer"),
        ("garbage", "garbage"),
        ("flood", "floods"),
        ("empty-lines", "floods"),
        ("exit", "exit code 7: no configuration found"),
    ],
)
async def test_a_server_that_can_not_be_used_leaves_the_others_alone(
    tmp_path: Path, behaviour: str, problem: str
) -> None:
    bad = spec(behaviour, connect_s=0.2 if behaviour == "hang" else 5)
    async with servers(tmp_path, bad, spec()) as mcp:
        assert _text(await mcp.get("plain").call("echo", {"text": "hi"})) == "echo: hi"
        await until(lambda: mcp.get(behaviour).problem)
        assert problem in (mcp.get(behaviour).problem or "")
        assert mcp.get("plain").state is State.READY


class _Endless(ByteReceiveStream):
    """What a server writes to standard error that never stops."""

    pieces = 0

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        self.pieces += 1
        return b"noise\n" * (max_bytes // 6)

    async def aclose(self) -> None:
        return


async def test_who_writes_to_standard_error_without_end_is_read_slowly() -> None:
    stream, words = _Endless(), LastWords()
    with anyio.move_on_after(0.3):
        await words.listen(stream)
    assert stream.pieces in (200, 400)  # the second may have changed meanwhile
    assert str(words).startswith("noise | noise")


async def test_a_server_whose_program_is_not_there_rests_after_some_tries(tmp_path: Path) -> None:
    missing = ServerSpec("missing", "stdio", command="no-such-program")
    async with servers(tmp_path, missing, breaker_threshold=2) as mcp:
        server = mcp.get("missing")
        await state(server, State.RESTING)
        assert server.failures == 2
        with anyio.fail_after(1), pytest.raises(ServerFailed, match="no-such-program"):
            await server.call("x", {})


async def test_one_that_is_not_there_is_told_of_in_the_same_way_whenever_it_is_asked(
    tmp_path: Path,
) -> None:
    """Before it has listed its tools, and when one of them is called."""
    async with servers(tmp_path, spec("hang", connect_s=0.1), close_s=0.1) as mcp:
        with pytest.raises(ToolError) as asked:
            await find_remote(mcp.get("hang"), "echo")
    assert asked.value.error_type == "server_unavailable"


async def test_after_its_rest_it_is_tried_again(tmp_path: Path) -> None:
    late = ServerSpec("late", "stdio", command=str(tmp_path / "program"))
    async with servers(tmp_path, late, breaker_threshold=1, breaker_cooldown_s=0.2) as mcp:
        await state(mcp.get("late"), State.RESTING)
        (tmp_path / "program").symlink_to("/bin/cat")
        (tmp_path / "program").unlink()
        script = Path(__file__).parents[2] / "mcp_server.py"
        (tmp_path / "program").write_text(f"#!/bin/sh\nexec python3 {script} plain\n")
        (tmp_path / "program").chmod(0o700)
        await state(mcp.get("late"), State.READY)


async def test_one_that_dies_in_a_call_ends_the_call_and_is_started_again(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        server = mcp.get("plain")
        with pytest.raises(ToolError) as lost:
            await server.call("die", {"text": ""})
        assert lost.value.error_type == "server_lost"
        assert "unknown" in (lost.value.next_action_hint or "")
        assert _text(await server.call("echo", {"text": "again"})) == "echo: again"


async def test_kill_9_of_a_server_fails_what_is_under_way_at_once(tmp_path: Path) -> None:
    mark = str(tmp_path)
    async with servers(tmp_path, spec(env={"AGENTD_TEST_MARK": mark})) as mcp:
        server = mcp.get("plain")
        await server.ready()
        failed: list[str] = []

        async def call() -> None:
            try:
                await server.call("wait", {"text": "60"})
            except ToolError as error:
                failed.append(error.error_type)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await until(lambda: server.busy)
                for pid in marked(mark):
                    os.kill(pid, signal.SIGKILL)
        assert failed == ["server_lost"]
        await server.ready()


async def test_a_call_that_takes_too_long_is_given_up_and_a_late_answer_harms_nothing(
    tmp_path: Path,
) -> None:
    async with servers(tmp_path, spec(call_s=0.1)) as mcp:
        server = mcp.get("plain")
        with pytest.raises(ToolError) as late:
            await server.call("wait", {"text": "0.2"})
        assert late.value.error_type == "timeout"
        await anyio.sleep(0.15)
        assert _text(await server.call("echo", {"text": "hi"})) == "echo: hi"


async def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[float, float | None]] = []
    async with servers(tmp_path, spec()) as mcp:
        await mcp.get("plain").call(
            "wait", {"text": "0.01"}, lambda done, total, _: told.append((done, total))
        )
    assert told == [(1, 2)]


async def test_a_call_that_is_cancelled_leaves_the_connection_as_it_is(tmp_path: Path) -> None:
    async with servers(tmp_path, spec()) as mcp:
        server = mcp.get("plain")
        await server.ready()
        with anyio.move_on_after(0.1):
            await server.call("wait", {"text": "0.3"})
        assert _text(await server.call("echo", {"text": "hi"})) == "echo: hi"
        assert server.state is State.READY


async def test_an_idle_server_is_closed_and_opened_by_the_next_call(tmp_path: Path) -> None:
    mark = str(tmp_path)
    idle = spec(idle_s=0.1, env={"AGENTD_TEST_MARK": mark})
    async with servers(tmp_path, idle) as mcp:
        server = mcp.get("plain")
        await state(server, State.IDLE)
        assert marked(mark) == set()
        assert len(mcp.remote_tools()) == 9
        assert _text(await server.call("echo", {"text": "hi"})) == "echo: hi"


async def test_a_call_that_outlasts_the_idle_time_keeps_the_connection_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    hear = McpServer._hear

    async def counted(server: McpServer, patience_s: float | None) -> None:
        nonlocal looked
        looked += 1
        await hear(server, patience_s)

    monkeypatch.setattr(McpServer, "_hear", counted)
    async with servers(tmp_path, spec(idle_s=0.1)) as mcp:
        assert _text(await mcp.get("plain").call("wait", {"text": "0.4"})) == "waited"
        assert looked < 20  # once for each idle time, not as often as the machine can


async def test_of_a_stubborn_server_nothing_is_left_after_the_stop(tmp_path: Path) -> None:
    mark = str(tmp_path)
    stubborn = spec("stubborn", env={"AGENTD_TEST_MARK": mark})
    async with servers(tmp_path, stubborn, close_s=0.1) as mcp:
        await mcp.get("stubborn").ready()
        # The guard, the server, the grandchild, which may be on its way.
        await until(lambda: len(marked(mark)) == 3)
    assert marked(mark) == set()


async def test_a_stop_while_it_starts_does_not_wait_for_it(tmp_path: Path) -> None:
    with anyio.fail_after(4):
        async with servers(tmp_path, spec("hang", connect_s=60), close_s=0.1) as mcp:
            await state(mcp.get("hang"), State.STARTING)


async def test_twenty_calls_at_once_share_one_connection(tmp_path: Path) -> None:
    mark = str(tmp_path)
    async with servers(tmp_path, spec(env={"AGENTD_TEST_MARK": mark})) as mcp:
        said: list[str] = []

        async def call(number: int) -> None:
            said.append(_text(await mcp.get("plain").call("echo", {"text": str(number)})))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(call, number)
        assert sorted(said) == sorted(f"echo: {number}" for number in range(20))
        assert len(marked(mark)) == 2


async def test_what_the_block_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="mine"):
        async with servers(tmp_path, spec()):
            raise ServerFailed("mine")
