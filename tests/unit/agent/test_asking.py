"""Failed model calls: what is tried again, what is not, and that every attempt is journaled."""

from pathlib import Path

import pytest

from agentd.domain.task import TaskState
from tests.desk import always, desk
from tests.messages_turns import DONE, Call, Failure, Turn, call

_END = (Call("complete_task", {"summary": "x"}),)
_ONCE = {
    "rate limit": Failure(429, "rate_limit_error"),
    "server error": Failure(500, "api_error"),
    "bad gateway": Failure(502, "api_error"),
    "overloaded": Failure(529, "overloaded_error"),
    "no byte": Failure(fault="drop"),
    "stall": Failure(fault="stall"),
    "silence": Failure(fault="silent"),
    "cut in mid-stream": Failure(fault="cut"),
    "reset in mid-stream": Failure(fault="reset"),
    "error in mid-stream": Failure(fault="error", type="overloaded_error"),
    "garbage": Failure(fault="garbage", message="{not json"),
}


@pytest.mark.parametrize("failure", _ONCE.values(), ids=_ONCE.keys())
async def test_is_tried_again_and_stands_in_the_journal(failure: Failure, tmp_path: Path) -> None:
    turn = Turn(text="Words to break off.", calls=_END, failures=[failure])
    async with desk(tmp_path, turn, models__stall_seconds=0.3) as at:
        task = await at.work()
        (note,) = await at.notes(task)
        rows = await at.rows("SELECT outcome, attempt FROM model_calls ORDER BY attempt")
    assert task.state is TaskState.COMPLETED
    assert (note["note"], note["attempt"]) == ("model_call_failed", 1)
    assert [row["attempt"] for row in rows] == [1, 2]
    assert rows[0]["outcome"] == note["kind"]
    assert rows[1]["outcome"] == "ok"


async def test_the_wait_that_the_provider_asks_for_is_honoured(tmp_path: Path) -> None:
    failure = Failure(429, "rate_limit_error", headers={"retry-after-ms": "120"})
    async with desk(tmp_path, Turn(calls=_END, failures=[failure])) as at:
        task = await at.work()
        (note,) = await at.notes(task)
    assert task.state is TaskState.COMPLETED
    assert note["wait_s"] >= 0.12


async def test_a_wait_beyond_the_cap_ends_the_task_at_once(tmp_path: Path) -> None:
    failure = Failure(429, "rate_limit_error", headers={"retry-after": "86400"})
    async with desk(tmp_path, behave=always(failure)) as at:
        task = await at.work()
        assert len(await at.notes(task)) == 1
    assert task.state is TaskState.FAILED
    assert task.retryable


async def test_tries_are_counted_for_each_reply_and_then_the_task_fails(tmp_path: Path) -> None:
    async with desk(
        tmp_path,
        behave=always(Failure(529, "overloaded_error", "Overloaded")),
        models__retry_attempts=3,
    ) as at:
        task = await at.work()
        assert len(await at.notes(task)) == 3
    assert task.state is TaskState.FAILED
    assert task.retryable
    assert "Overloaded" in (task.error or "")


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (401, "authentication_error", "invalid x-api-key"),
        (403, "permission_error", "not for you"),
        (402, "billing_error", "pay first"),
        (400, "invalid_request_error", "Your credit balance is too low"),
        (400, "invalid_request_error", "messages.0: wrong"),
        (404, "not_found_error", "model: no-such-model"),
        (413, "request_too_large", "too large"),
    ],
)
async def test_ends_the_task_at_once_with_the_providers_words(
    status: int, kind: str, message: str, tmp_path: Path
) -> None:
    async with desk(tmp_path, behave=always(Failure(status, kind, message))) as at:
        task = await at.work()
        assert len(await at.notes(task)) == 1
    assert task.state is TaskState.FAILED
    assert message in (task.error or "")
    assert not task.retryable


async def test_without_a_key_the_task_fails_and_says_what_to_set(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE, models__anthropic__api_key=None) as at:
        task = await at.work()
    assert task.state is TaskState.FAILED
    assert "ANTHROPIC_API_KEY" in (task.error or "")


async def test_an_unknown_model_fails_the_task_that_named_it_and_no_other(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE) as at:
        wrong = await at.enqueue(model="nobody:nothing")
        right = await at.enqueue()
        await at.drain()
        failed, done = await at.tasks.get(wrong.id), await at.tasks.get(right.id)
    assert failed.state is TaskState.FAILED
    assert "nobody:nothing" in (failed.error or "")
    assert done.state is TaskState.COMPLETED


async def test_a_broken_stream_leaves_nothing_half_said(tmp_path: Path) -> None:
    half = Failure(fault="cut", after_events=9)
    turn = Turn(text="Long words.", calls=(Call("ls", {"path": "."}),), failures=[half, half])
    async with desk(tmp_path, turn, DONE) as at:
        task = await at.work()
        results = await at.results(task)
    assert task.state is TaskState.COMPLETED
    assert [body["tool"] for body in results] == ["ls", "complete_task"]


async def test_a_failing_call_in_the_middle_keeps_what_came_before(tmp_path: Path) -> None:
    turns = [
        call("write", path="a", content="1"),
        Turn(calls=_END, failures=[Failure(500), Failure(fault="reset")]),
    ]
    async with desk(tmp_path, *turns) as at:
        task = await at.work()
        tools = [body["tool"] for body in await at.results(task)]
    assert task.state is TaskState.COMPLETED
    assert tools == ["write", "complete_task"]
