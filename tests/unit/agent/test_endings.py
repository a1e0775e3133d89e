"""agent/endings.py: what follows from each stop reason and from replies without a call."""

from pathlib import Path

import pytest

from agentd.domain.event import EventKind
from agentd.domain.task import TaskState
from tests.desk import always, desk
from tests.messages_turns import DONE, Call, Turn, call

_DOES = (Call("write", {"path": "no.txt", "content": "x"}),)


async def test_two_reminders_in_a_row_and_then_the_task_fails_with_its_text_kept(
    tmp_path: Path,
) -> None:
    turns = [Turn(text="One."), Turn(text="Two."), Turn(text="Three, and that is all.")]
    async with desk(tmp_path, *turns) as at:
        task = await at.work()
        sources = [e.body["source"] for e in await at.journal(task) if e.kind is EventKind.USER]
    assert task.state is TaskState.FAILED
    assert task.error == "ended without a terminal tool"
    assert task.output == "Three, and that is all."
    assert sources == ["task", "reminder", "reminder"]


async def test_a_tool_call_between_them_starts_the_count_again(tmp_path: Path) -> None:
    talk, look = Turn(text="Hm."), call("ls", path=".")
    async with desk(tmp_path, talk, talk, look, talk, talk, DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED


async def test_an_empty_reply_is_reminded_too(tmp_path: Path) -> None:
    empty = Turn(stop_reason="end_turn")

    def behave(body: object) -> Turn:
        return DONE if "without a tool call" in str(body) else empty

    async with desk(tmp_path, behave=behave) as at:
        assert (await at.work()).state is TaskState.COMPLETED


async def test_a_stop_sequence_is_a_reply_without_a_call(tmp_path: Path) -> None:
    async with desk(tmp_path, Turn(text="Stop.", stop_reason="stop_sequence"), DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED


async def test_a_paused_turn_is_sent_back_unchanged(tmp_path: Path) -> None:
    paused = Turn(text="Searching …", stop_reason="pause_turn")
    async with desk(tmp_path, paused, DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED
        last = at.api.requests[1]["messages"][-1]
    assert last["role"] == "assistant"
    assert last["content"][0]["text"] == "Searching …"


@pytest.mark.parametrize("reason", ["refusal", "model_context_window_exceeded"])
async def test_calls_are_not_carried_out_after(reason: str, tmp_path: Path) -> None:
    turn = Turn(text="No.", calls=_DOES, stop_reason=reason)
    async with desk(tmp_path, turn) as at:
        task = await at.work()
        assert not (at.workspace / "no.txt").exists()
    assert task.state is TaskState.FAILED
    assert not task.retryable
    assert task.output == "No."


async def test_a_reply_that_is_cut_off_goes_on_and_its_calls_are_void(tmp_path: Path) -> None:
    cut = Turn(text="I write", calls=_DOES, stop_reason="max_tokens")
    async with desk(tmp_path, cut, DONE) as at:
        task = await at.work()
        assert not (at.workspace / "no.txt").exists()
        said = at.api.requests[1]["messages"]
    assert task.state is TaskState.COMPLETED
    assert [block["type"] for block in said[1]["content"]] == ["text"]
    assert "cut off" in said[2]["content"][0]["text"]


async def test_replies_cut_off_again_and_again_end_the_task(tmp_path: Path) -> None:
    cut = Turn(text="More and more", stop_reason="max_tokens")
    async with desk(tmp_path, behave=always(cut)) as at:
        task = await at.work()
        assert len(at.api.requests) == 4
    assert task.state is TaskState.FAILED
    assert "max_tokens" in (task.error or "")


async def test_a_stop_reason_of_tomorrow_is_taken_as_the_end_of_a_reply(tmp_path: Path) -> None:
    async with desk(tmp_path, Turn(text="?", stop_reason="brand_new"), DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED


async def test_a_reply_of_thinking_alone_is_not_sent_back(tmp_path: Path) -> None:
    thought = Turn(thinking="Only that.", stop_reason="end_turn")

    def behave(body: object) -> Turn:
        return DONE if "without a tool call" in str(body) else thought

    async with desk(tmp_path, behave=behave) as at:
        assert (await at.work()).state is TaskState.COMPLETED
        assert [message["role"] for message in at.api.requests[1]["messages"]] == ["user"]
