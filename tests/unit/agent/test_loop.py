"""The agent loop against a real HTTP server through the real SDK."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agentd.domain.event import EventKind
from agentd.domain.task import Limits, TaskState
from tests.desk import always, desk
from tests.messages_turns import DONE, Call, Turn, call

_UNGUARDED: dict[str, Any] = {"guards__same_result": 0, "guards__same_call": 0}
_NOTE = '''
from typing import Annotated
from pydantic import Field
from agentd.store.connection import Connection
from agentd.toolkit.definition import tool

@tool(group="notes", effect="transactional")
async def note(conn: Connection, id: Annotated[str, Field(description="Its id.")]) -> str:
    """Note it."""
    await conn.execute("INSERT INTO sessions (id, created_at) VALUES ($id, now())", id=id)
    return "noted"
'''
_LAUNCH = '''
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import tool

@tool(group="rocket", approval=True)
def launch(workspace: Workspace) -> str:
    """Launch it."""
    workspace.write("launched", b"")
    return "launched"
'''


async def test_a_task_goes_from_the_queue_to_its_terminal_tool(tmp_path: Path) -> None:
    turns = [
        call("write", path="a.txt", content="hello"),
        call("complete_task", summary="Wrote it."),
    ]
    async with desk(tmp_path, *turns) as at:
        task = await at.work("Write a file.")
        assert (task.state, task.output, task.attempt) == (TaskState.COMPLETED, "Wrote it.", 1)
        assert (at.workspace / "a.txt").read_text() == "hello"
        kinds = [event.kind for event in await at.journal(task)]
    turn = [EventKind.ASSISTANT, EventKind.TOOL_CALL, EventKind.TOOL_RESULT]
    assert kinds == [EventKind.USER, *turn, *turn]


@pytest.mark.requirement("S3-26", "S0-26", "S0-09")
async def test_the_results_of_a_turn_go_back_in_one_message_in_call_order(tmp_path: Path) -> None:
    calls = (
        Call("read", {"path": "a.txt"}),
        Call("write", {"path": "a.txt", "content": "new"}),
        Call("read", {"path": "a.txt"}),
        Call("nothing_such", {}),
    )
    async with desk(tmp_path, Turn(calls=calls), DONE) as at:
        (at.workspace / "a.txt").write_text("old")
        task = await at.work()
        assert task.state is TaskState.COMPLETED
        sent = at.api.requests[1]["messages"]
    asked, answered = sent[-2]["content"], sent[-1]["content"]
    assert [block["tool_use_id"] for block in answered] == [block["id"] for block in asked]
    texts = [block["content"] for block in answered]
    assert "old" in texts[0]
    assert "new" in texts[2]
    assert "unknown_tool" in texts[3]


async def test_a_terminal_tool_comes_last_wherever_it_stands_in_the_turn(tmp_path: Path) -> None:
    end = Call("complete_task", {"summary": "Done."})
    write = Call("write", {"path": "late.txt", "content": "x"})
    async with desk(tmp_path, Turn(calls=(end, write))) as at:
        task = await at.work()
        assert task.state is TaskState.COMPLETED
        assert (at.workspace / "late.txt").exists()
        assert [body["tool"] for body in await at.results(task)] == ["write", "complete_task"]


async def test_of_two_terminal_tools_the_first_that_works_ends_the_task(tmp_path: Path) -> None:
    calls = (
        Call("complete_task", {"summary": ""}),
        Call("fail_task", {"reason": "no"}),
        Call("complete_task", {"summary": "yes"}),
    )
    async with desk(tmp_path, Turn(calls=calls)) as at:
        task = await at.work()
        assert (task.state, task.error) == (TaskState.FAILED, "no")
        results = {body["call_id"]: body.get("error_type") for body in await at.results(task)}
        assert list(results.values()).count("task_ended") == 1


@pytest.mark.requirement("S3-27", "S3-28")
async def test_too_many_turns_end_the_task_with_the_known_sentence(tmp_path: Path) -> None:
    async with desk(tmp_path, behave=always(call("ls", path=".")), **_UNGUARDED) as at:
        task = await at.work()
        assert task.state is TaskState.FAILED
        assert (task.error or "").startswith("I'm having trouble completing this task.")
        assert task.retryable
        assert len(at.api.requests) == 20


@pytest.mark.requirement("S3-27")
async def test_the_limit_of_turns_is_the_tasks_own_and_0_is_none(tmp_path: Path) -> None:
    long = [call("ls", path=".")] * 25
    async with desk(tmp_path, *long, DONE, **_UNGUARDED) as at:
        few = await at.enqueue("Few.", limits=Limits(max_tool_iterations=2))
        many = await at.enqueue("Many.", limits=Limits(max_tool_iterations=0))
        await at.drain()
        assert (await at.tasks.get(few.id)).state is TaskState.FAILED
        assert (await at.tasks.get(many.id)).state is TaskState.COMPLETED
        assert len(at.api.requests) == 2 + 26


async def test_the_deadline_ends_a_run_in_the_middle_of_a_reply(tmp_path: Path) -> None:
    async with desk(tmp_path, Turn(text="slow", delay_s=4)) as at:
        task = await at.work(limits=Limits(deadline_s=0.2))
        assert task.state is TaskState.FAILED
        assert "deadline" in (task.error or "")
        assert task.retryable


@pytest.mark.requirement("S0-39", "S2-02", "S2-03")
async def test_wrong_arguments_come_back_as_an_error_from_which_the_model_recovers(
    tmp_path: Path,
) -> None:
    wrong = Turn(calls=(Call("write", {"path": 3, "contents": "x"}), Call("write", '{"path": "a')))
    async with desk(tmp_path, wrong, DONE) as at:
        task = await at.work()
        assert task.state is TaskState.COMPLETED
        results = await at.results(task)
    assert [body["error_type"] for body in results[:2]] == ["invalid_arguments"] * 2
    assert "contents is no parameter" in results[0]["content"]
    assert "no valid JSON" in results[1]["content"]


async def test_the_prefix_of_a_request_is_the_request_before_it_byte_for_byte(
    tmp_path: Path,
) -> None:
    turns = [
        Turn(thinking="Hm.", text="I look.", calls=(Call("ls", {"path": "."}),)),
        Turn(calls=(Call("read", {"path": "a"}), Call("write", {"path": "b", "content": "é"}))),
        Turn(text="A reply without a call."),
        Turn(thinking="Again.", calls=(Call("ls", {"path": "."}),)),
        DONE,
    ]
    async with desk(tmp_path, *turns) as at:
        assert (await at.work()).state is TaskState.COMPLETED
        requests = at.api.requests
    assert len(requests) == 5
    for before, after in pairwise(requests):
        assert (after["system"], after["tools"]) == (before["system"], before["tools"])
        plain = [_without_marks(message) for message in before["messages"]]
        follows = [_without_marks(message) for message in after["messages"]]
        assert str(follows).startswith(str(plain)[: -len("]}]")])
    for request in requests:
        assert request["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert request["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_two_tasks_share_the_cached_part(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE) as at:
        await at.enqueue("One.")
        await at.enqueue("Two.")
        await at.drain()
        one, two = at.api.requests
        assert (one["system"], one["tools"]) == (two["system"], two["tools"])
        assert [tool["name"] for tool in one["tools"]] == sorted(t["name"] for t in one["tools"])


async def test_usage_and_cost_of_every_call_are_stored(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 100,
        "cache_creation_input_tokens": 2000,
        "cache_read_input_tokens": 3000,
    }
    turn = Turn(calls=(Call("complete_task", {"summary": "x"}),), usage=usage)
    async with desk(tmp_path, turn) as at:
        task = await at.work()
        (row,) = await at.rows("SELECT * FROM model_calls WHERE task_id = $id", id=task.id)
    assert row["outcome"] == "ok"
    assert row["stop_reason"] == "tool_use"
    tokens = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")
    assert [row[name] for name in tokens] == [1000, 100, 2000, 3000]
    # claude-haiku-4-5: 1, 5, 1.25 and 0.10 US dollars for a million tokens
    assert row["cost_microusd"] == 1000 + 500 + 2500 + 300


async def test_thinking_goes_back_byte_for_byte(tmp_path: Path) -> None:
    turn = Turn(thinking="Schritt für Schritt … 🤔", calls=(Call("ls", {"path": "."}),))
    async with desk(tmp_path, turn, DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED
        block = at.api.requests[1]["messages"][1]["content"][0]
    assert block["thinking"] == "Schritt für Schritt … 🤔"
    assert block["signature"]


async def test_a_tool_that_needs_approval_is_not_called_for_the_model(tmp_path: Path) -> None:
    async with desk(tmp_path, call("launch"), DONE) as at:
        (at.config.tools_path / "launch.py").write_text(_LAUNCH)
        task = await at.work()
        launched, _ = await at.results(task)
        assert launched["error_type"] == "approval_required"
        assert not (at.workspace / "launched").exists()


async def test_what_the_database_refuses_at_the_commit_is_told_to_the_model(tmp_path: Path) -> None:
    async with desk(tmp_path, call("note", id="one"), call("note", id="one"), DONE) as at:
        (at.config.tools_path / "note.py").write_text(_NOTE)
        task = await at.work()
        first, second, _ = await at.results(task)
    assert not first["is_error"]
    assert second["error_type"] == "store_error"
    assert task.state is TaskState.COMPLETED


def _without_marks(message: dict[str, object]) -> dict[str, object]:
    blocks = message["content"]
    assert isinstance(blocks, list)
    bare = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
    return {"role": message["role"], "content": bare}
