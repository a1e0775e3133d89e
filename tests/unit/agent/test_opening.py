"""What the model is told when a run starts: predecessors' outputs, what woke the task, messages."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentd.domain.clock import SystemClock
from agentd.domain.ids import SessionId
from agentd.domain.task import TaskState
from tests.desk import Desk, desk
from tests.messages_turns import DONE, Call, Turn, by_prompt, call, script


def _texts(body: Mapping[str, Any], message: int = -1) -> str:
    """What was said in one message of a request."""
    blocks = body["messages"][message]["content"]
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


async def _waiting(at: Desk, **wait: Any) -> Any:
    task = await at.work("Wait, then go on.")
    assert task.state is TaskState.WAITING
    return task


def _waits(**wait: Any) -> list[Turn]:
    return [call("wait_task", reason="the sun", **wait), DONE]


async def test_outputs_of_predecessors_stand_in_the_first_message(tmp_path: Path) -> None:
    first = script(call("complete_task", summary="The answer is 42."))
    behave = by_prompt({"Find the answer": first})
    async with desk(tmp_path, behave=behave) as at:
        before = await at.enqueue("Find the answer.", title="Answer")
        after = await at.enqueue("Use it.", after=(before.id,))
        await at.drain()
        assert (await at.tasks.get(after.id)).state is TaskState.COMPLETED
        text = _texts(at.api.requests[1])
    assert "The answer is 42." in text
    assert "Answer" in text
    assert text.endswith("Use it.")


async def test_a_task_that_waits_goes_on_when_a_person_resumes_it(tmp_path: Path) -> None:
    async with desk(tmp_path, *_waits()) as at:
        task = await _waiting(at)
        assert task.waiting_reason == "the sun"
        await at.tasks.resume(task.id, "It is up.")
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED
        text = _texts(at.api.requests[-1])
    assert "the sun" in text
    assert "It is up." in text


async def test_a_message_to_its_session_wakes_a_waiting_task(tmp_path: Path) -> None:
    async with desk(tmp_path, *_waits()) as at:
        task = await _waiting(at)
        await at.sessions.send(task.session_id, "Good morning.", "person")
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED
        assert "Good morning." in _texts(at.api.requests[-1])


async def test_a_time_wakes_it(tmp_path: Path) -> None:
    async with desk(tmp_path, *_waits(until="1s")) as at:
        task = await at.enqueue("Wait, then go on.")
        async with at.daemon():
            ended = await at.until(task.id, "completed", "failed")
        assert ended.state is TaskState.COMPLETED
        assert "time" in _texts(at.api.requests[-1])


async def test_the_end_of_another_task_wakes_it_and_its_output_is_told(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        other = await at.enqueue("Other.", not_before=SystemClock().now() + timedelta(days=1))
        at.api.behave = by_prompt({"Wait": script(*_waits(on_task=other.id))})
        task = await _waiting(at)
        await at.tasks.cancel(other.id, reason="not needed")
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED
        assert "not needed" in _texts(at.api.requests[-1])


async def test_waiting_for_oneself_is_refused_and_the_model_hears_why(tmp_path: Path) -> None:
    def behave(body: Mapping[str, Any]) -> Turn:
        if len(body["messages"]) > 1:
            return DONE
        return Turn(calls=(Call("wait_task", {"reason": "me", "on_task": own}),))

    own = ""
    async with desk(tmp_path, behave=behave) as at:
        task = await at.enqueue()
        own = task.id
        await at.drain()
        (refused, _) = await at.results(task)
    assert refused["is_error"]


async def test_a_retried_task_knows_why_it_failed(tmp_path: Path) -> None:
    async with desk(tmp_path, call("fail_task", reason="no key"), DONE) as at:
        task = await at.work()
        assert (task.state, task.error) == (TaskState.FAILED, "no key")
        await at.tasks.retry(task.id)
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED
        assert "no key" in _texts(at.api.requests[-1])


async def test_a_second_task_of_a_session_sees_the_first(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE, DONE) as at:
        for prompt in ("One.", "Two."):
            await at.enqueue(prompt, session_id=SessionId("main"))
        await at.drain()
        assert _texts(at.api.requests[-1], 0) == "One."
        assert _texts(at.api.requests[-1]) == "Two."


async def test_what_is_said_to_a_running_task_is_read_in_its_next_turn(tmp_path: Path) -> None:
    async with desk(tmp_path, call("ls", path="."), DONE) as at:
        task = await at.enqueue(session_id=SessionId("main"))
        await at.sessions.send(SessionId("main"), "Mind the gap.", "person")
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED
        assert "Mind the gap." in str(at.api.requests[0]["messages"])


@pytest.mark.parametrize("extra", ["", "Speak like a pirate."])
async def test_the_homes_own_prompt_stands_behind_the_built_in_one(
    extra: str, tmp_path: Path
) -> None:
    async with desk(tmp_path, DONE) as at:
        (at.config.prompts_path / "system.md").write_text(extra)
        await at.work()
        (system,) = at.api.requests[0]["system"]
    assert str(at.workspace) in system["text"]
    assert system["text"].rstrip().endswith(extra or "person's word.")
