"""Background processes: started by exec, seen and steered by process, ended with their session."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.domain.ids import DaemonId, RunId, SessionId, TaskId
from agentd.domain.redactor import Redactor
from agentd.domain.run import Run
from agentd.domain.task import NewTask
from agentd.processes.registry import Processes, Settings
from agentd.sandbox.commands import Command
from agentd.store.processes import ProcessStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from agentd.tools.runtime.process import process
from tests.clock import HandClock
from tests.confined import make_commands, needs_sandbox, shell, until
from tests.desk import desk
from tests.messages_turns import call

pytestmark = needs_sandbox
RUN = Run(
    RunId("run-1"),
    TaskId("task-1"),
    SessionId("session-1"),
    DaemonId("daemon-a"),
    1,
    1,
    datetime(2026, 1, 1, tzinfo=UTC),
)


@asynccontextmanager
async def registry(store: Store, path: Path, *, alive: bool = False) -> AsyncIterator[Processes]:
    settings = Settings(path / "processes", 1, 7, lambda _: alive, Redactor())
    clock = HandClock()
    made = Processes(make_commands(path), ProcessStore(store, clock), clock, settings)
    async with made.serve():
        yield made


async def start(processes: Processes, text: str, run: Run = RUN, **facts: Any) -> str:
    return await processes.start(run, shell(text, timeout_s=60, **facts), text)


async def ended(processes: Processes, process_id: str) -> Any:
    with anyio.fail_after(10):
        while True:
            found = await process(processes, RUN, "status", process_id)
            if not found.running:
                return found
            await anyio.sleep(0.02)


@pytest.mark.requirement("S2-25")
async def test_it_is_seen_fed_and_signalled(store: Store, tmp_path: Path) -> None:
    async with registry(store, tmp_path) as processes:
        text = "trap 'echo interrupted; exit 3' INT; while read line; do echo got $line; done; wait"
        started = await start(processes, f"{text} < /dev/stdin; while :; do sleep 0.01; done")
        assert "running since" in (await process(processes, RUN, "status", started)).content
        await process(processes, RUN, "input", started, input="one\n")
        await process(processes, RUN, "input", started, input="two\n")
        await until(lambda: b"two" in processes.output(started, 0, 100).data)
        polled = await process(processes, RUN, "poll", started, offset=4)
        assert polled.content.startswith("one\ngot two\n[running since")
        assert (
            f'process(action="poll", process_id="{started}", offset=16) goes on' in polled.content
        )
        assert polled.next_offset == 16
        beyond = await process(processes, RUN, "poll", started, offset=1000)
        assert beyond.content.startswith("[running since")
        await process(processes, RUN, "input", started)  # closes it
        sent = await process(processes, RUN, "signal", started, signal="int")
        assert sent.content == "SIGINT was sent."
        found = await ended(processes, started)
        assert (found.exit_code, found.running) == (3, False)
        assert "exit code 3" in found.content
        last = await process(processes, RUN, "poll", started)
        assert last.content.startswith("got one\ngot two\ninterrupted\n[ended at")
        assert started in (await process(processes, RUN, "list")).content


async def test_what_can_not_be_done_is_said(store: Store, tmp_path: Path) -> None:
    async with registry(store, tmp_path) as processes:
        started = await start(processes, "true")
        await ended(processes, started)
        other = Run(
            RUN.id, RUN.task_id, SessionId("session-2"), RUN.daemon_id, 1, 1, RUN.started_at
        )
        for run, facts, kind in (
            (RUN, {"action": "input", "process_id": started, "input": "x"}, "not_running"),
            (
                RUN,
                {"action": "signal", "process_id": started, "signal": "HUH"},
                "invalid_arguments",
            ),
            (RUN, {"action": "status", "process_id": "nobody"}, "not_found"),
            (RUN, {"action": "poll"}, "invalid_arguments"),
            (other, {"action": "status", "process_id": started}, "not_found"),
        ):
            with pytest.raises(ToolError) as caught:
                await process(processes, run, **facts)
            assert caught.value.error_type == kind
        assert (await process(processes, other, "list")).content == "(no processes)"


@pytest.mark.requirement("S2-22")
async def test_a_long_output_is_polled_in_parts_of_10_000(store: Store, tmp_path: Path) -> None:
    async with registry(store, tmp_path) as processes:
        started = await start(processes, "seq 1 20000; echo ä")
        await ended(processes, started)
        whole = "".join(f"{n}\n" for n in range(1, 20001)) + "ä\n"
        seen, offset = b"", 0
        while True:
            polled = await process(processes, RUN, "poll", started, offset=offset)
            text = polled.content.rpartition("\n[")[0]
            assert len(text) <= 10_000
            assert polled.next_offset is not None
            seen += processes.output(started, offset, polled.next_offset - offset).data
            offset = polled.next_offset
            if "goes on" not in polled.content:
                break
            assert re.search(
                rf"bytes follow\. process\(.*offset={offset}\) goes on", polled.content
            )
        assert seen.decode() == whole


@pytest.mark.requirement("S2-23")
async def test_it_stands_in_the_database_with_its_end(store: Store, tmp_path: Path) -> None:
    async with registry(store, tmp_path) as processes:
        started = await start(processes, "exit 5")
        await ended(processes, started)
    async with store.transaction() as conn:
        (row,) = await conn.fetch("SELECT * FROM processes")
    facts = [row[name] for name in ("id", "session_id", "task_id", "daemon_id", "exit_code")]
    assert facts == [started, "session-1", "task-1", "daemon-a", 5]
    assert row["ended_at"] is not None


async def test_it_ends_when_its_run_is_lost_and_when_the_daemon_stops(
    store: Store, tmp_path: Path
) -> None:
    async with registry(store, tmp_path) as processes:
        lost, kept = await start(processes, "sleep 67.5"), None
        other = Run(RunId("run-2"), *[getattr(RUN, n) for n in list(RUN.__slots__)[1:]])
        kept = await start(processes, "sleep 67.5", other)
        await store_task(store)  # its session has something to do
        processes.run_ended(RUN, lost=True)
        assert "lost to another daemon" in (await ended(processes, lost)).content
        assert (await process(processes, RUN, "status", kept)).running
    async with registry(store, tmp_path) as processes:
        found = await process(processes, RUN, "status", kept)
        assert "the daemon stopped" in found.content


async def test_it_ends_with_the_last_task_of_its_session(store: Store, tmp_path: Path) -> None:
    async with registry(store, tmp_path) as processes:
        task = await store_task(store)
        started = await start(processes, "sleep 68.5")
        processes.run_ended(RUN, lost=False)
        await anyio.lowlevel.checkpoint()
        assert (await process(processes, RUN, "status", started)).running
        await TaskStore(store, HandClock()).cancel(task, reason="enough")
        processes.run_ended(RUN, lost=False)
        assert "had nothing more to do" in (await ended(processes, started)).content


async def test_a_session_can_not_fill_the_daemon_with_processes(
    store: Store, tmp_path: Path
) -> None:
    async with registry(store, tmp_path) as processes:
        commands = [shell("sleep 66", timeout_s=60) for _ in range(17)]
        failures: list[ToolError] = []

        async def begin(command: Command) -> None:
            try:
                await processes.start(RUN, command, "sleep 66")
            except ToolError as error:
                failures.append(error)

        async with anyio.create_task_group() as together:
            for each in commands:
                together.start_soon(begin, each)
        assert [each.error_type for each in failures] == ["too_many"]
        found = await processes.list(RUN.session_id)
        assert len(found) == 16
        processes.run_ended(RUN, lost=True)
        for each in found:
            await ended(processes, each.id)
        await start(processes, "true")


async def test_its_time_is_limited_and_a_start_that_failed_is_told(
    store: Store, tmp_path: Path
) -> None:
    async with registry(store, tmp_path) as processes:
        lost = await processes.start(RUN, shell("true", workdir=tmp_path / "none"), "true")
        assert "could not be started: see its output" in (await ended(processes, lost)).content
        assert "Can't chdir" in (await process(processes, RUN, "poll", lost)).content
        late = await processes.start(RUN, shell("sleep 60", timeout_s=0.2), "sleep 60")
        assert "timed out after 0.2s" in (await ended(processes, late)).content


async def test_a_dead_daemons_process_is_told_as_dead_and_a_living_ones_is_not(
    store: Store, tmp_path: Path
) -> None:
    records = ProcessStore(store, HandClock())
    await records.add("p-1", RUN, "sleep 1")
    async with registry(store, tmp_path, alive=True) as processes:
        assert (await process(processes, RUN, "status", "p-1")).running
    async with registry(store, tmp_path) as processes:
        assert "the daemon died" in (await process(processes, RUN, "status", "p-1")).content
    assert await records.forget(HandClock().now() + timedelta(days=1)) == ["p-1"]


async def test_in_a_run_it_outlives_the_turn_and_ends_with_the_task(tmp_path: Path) -> None:
    turns = [
        call("exec", command="echo up > /dev/stdout; sleep 69.5", background=True),
        call("exec", command="echo between"),
        call("process", action="list"),
        call("complete_task", summary="Done."),
    ]
    async with desk(tmp_path, *turns) as at:
        results = await at.results(await at.work())
        assert "It runs in the background. process(action=" in results[0]["content"]
        assert "running since" in results[2]["content"]
        (row,) = await at.rows("SELECT ended_at, ended_why FROM processes")
        assert row["ended_at"] is not None
        assert row["ended_why"] in ("its session had nothing more to do", "the daemon stopped")


async def store_task(store: Store) -> TaskId:
    """An unfinished task of the session."""
    tasks = TaskStore(store, HandClock())
    new = NewTask("Work.", enqueued_by="test", session_id=RUN.session_id)
    return (await tasks.enqueue(new)).task.id


async def test_what_a_process_with_network_prints_is_marked_as_from_outside(
    store: Store, tmp_path: Path
) -> None:
    async with registry(store, tmp_path) as processes:
        process_id = await start(processes, "echo theirs")
        await until(lambda: b"theirs" in processes.output(process_id, 0, 100).data)
        own = await process(processes, RUN, "poll", process_id)
        assert (own.outside_of, own.notice) == (None, None)
        granted = replace(processes._commands.settings, grant=nullcontext)  # type: ignore[arg-type]
        processes._commands.settings = granted
        theirs = await process(processes, RUN, "poll", process_id)
    assert theirs.outside_of == "process"
    assert theirs.content == "theirs"
    assert theirs.notice is not None
