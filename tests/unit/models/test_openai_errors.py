"""models/openai_errors.py: whatever goes wrong is one ModelError that says what to do."""

import socket
from typing import Any

import pytest

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.models.openai import OpenAiModel
from tests.anthropic_talk import answer_to
from tests.chat_api import ChatApi, Pieces, piece
from tests.messages_turns import Call, Failure, Turn
from tests.openai_talk import MODEL, asking, talk

Kind = ModelErrorKind

STATUSES = [
    (400, "invalid_request_error", Kind.INVALID_REQUEST),
    (401, "invalid_api_key", Kind.AUTHENTICATION),
    (402, "insufficient_credits", Kind.BILLING),
    (403, "permission_error", Kind.AUTHENTICATION),
    (404, "model_not_found", Kind.INVALID_REQUEST),
    (408, "timeout", Kind.TIMEOUT),
    (413, "too_large", Kind.INVALID_REQUEST),
    (429, "rate_limit_exceeded", Kind.RATE_LIMIT),
    (429, "insufficient_quota", Kind.BILLING),
    (500, "server_error", Kind.SERVER),
    (502, "bad_gateway", Kind.SERVER),
    (503, "server_overloaded", Kind.OVERLOADED),
    (529, "overloaded", Kind.OVERLOADED),
]
NONSENSE = [
    "[]",
    "7",
    '"x"',
    "{broken",
    "",
    '{"choices": 7}',
    '{"choices": [7]}',
    '{"choices": [{"delta": 7}]}',
    '{"choices": [{"delta": {"content": 7}}]}',
    '{"choices": [{"delta": {"content": "\\ud800"}, "finish_reason": "stop"}]}',
    '{"choices": [{"delta": {}, "finish_reason": {"a": 1}}]}',
    '{"choices": [{"delta": {"tool_calls": 7}}]}',
    '{"choices": [{"delta": {"tool_calls": [{"function": 7}]}}]}',
    '{"choices": [{"delta": {"tool_calls": [{"index": {}}]}}]}',
    '{"usage": 7, "choices": [{"delta": {}, "finish_reason": "stop"}]}',
    '{"usage": {"prompt_tokens": "many"}, "choices": [{"delta": {}, "finish_reason": "stop"}]}',
]


@pytest.mark.parametrize(("status", "type_", "kind"), STATUSES)
async def test_each_status_is_one_kind_and_is_asked_for_once(
    status: int, type_: str, kind: Kind
) -> None:
    async with talk(Failure(status, type_, "the provider's words")) as t:
        error = await t.fail()
    assert (error.kind, error.status) == (kind, status)
    assert error.message == "the provider's words"
    assert error.request_id is not None
    assert t.api.answered == 1


async def test_the_wait_that_the_provider_asks_for() -> None:
    async with talk(Failure(429, headers={"retry-after": "7"})) as t:
        assert (await t.fail()).retry_after_s == 7


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("rate_limit_exceeded", Kind.RATE_LIMIT),
        ("429", Kind.RATE_LIMIT),
        ("502", Kind.SERVER),
        ("insufficient_quota", Kind.BILLING),
        ("error_of_tomorrow", Kind.SERVER),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_known_by_its_code(
    type_: str, kind: Kind
) -> None:
    async with talk(Failure(type=type_, message="not now", fault="error")) as t:
        error = await t.fail()
    assert (error.kind, error.message, error.status) == (kind, "not now", 200)


@pytest.mark.parametrize("fault", ["cut", "reset", "garbage"])
@pytest.mark.parametrize("after_events", [0, 1, 4])
async def test_a_stream_that_ends_too_early_is_no_reply(fault: Any, after_events: int) -> None:
    async with talk(Failure(fault=fault, after_events=after_events)) as t:
        error = await t.fail()
    assert error.kind in (Kind.BROKEN_STREAM, Kind.CONNECTION)
    assert error.retryable


@pytest.mark.parametrize("reason", [None, "error"])
async def test_a_reply_without_a_finish_reason_is_no_reply(reason: str | None) -> None:
    async with talk(Pieces([piece(reason, content="All of it."), "data: [DONE]\n\n"])) as t:
        assert (await t.fail()).kind is Kind.BROKEN_STREAM


@pytest.mark.parametrize("data", NONSENSE)
async def test_pieces_that_make_no_sense_are_a_broken_stream(data: str) -> None:
    async with talk(Failure(fault="garbage", message=data, after_events=1)) as t:
        assert (await t.fail()).kind is Kind.BROKEN_STREAM


@pytest.mark.parametrize("fault", ["silent", "stall"])
async def test_silence_is_a_timeout(fault: Any) -> None:
    async with talk(Failure(fault=fault), stall_s=0.2) as t:
        error = await t.fail()
        await t.api.until(lambda: t.api.disconnects == 1)
    assert error.kind is Kind.TIMEOUT


async def test_a_connection_that_closes_without_an_answer() -> None:
    async with talk(Failure(fault="drop")) as t:
        assert (await t.fail()).kind is Kind.CONNECTION


async def test_nobody_listens_and_the_hint_says_where() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        error = await refused(base_url=url)
    assert (error.kind, error.status) == (Kind.CONNECTION, None)
    assert url in str(error.hint)


@pytest.mark.parametrize("kind", ["text/html", "application/json; charset=utf-8"])
async def test_a_page_instead_of_a_stream_points_to_the_address(kind: str) -> None:
    page = Pieces(['{"error": "Unexpected endpoint"}'], content_type=kind)
    async with talk(page) as t:
        error = await t.fail()
    assert error.kind is Kind.INVALID_REQUEST
    assert "Unexpected endpoint" in error.message
    assert "/v1" in str(error.hint)


@pytest.mark.parametrize("key", ["sk-…", "two\nlines", "a\x7fb"])
async def test_a_key_that_no_header_can_carry_is_never_shown(key: str) -> None:
    async with ChatApi() as api:
        error = await refused(key=key, base_url=api.base_url)
    assert error.kind is Kind.AUTHENTICATION
    assert key not in str(error)
    assert api.answered == 0


async def test_after_a_failure_the_same_model_goes_on() -> None:
    faults = [Failure(529), Failure(fault="cut"), Failure(fault="reset"), Failure(fault="error")]
    async with talk(Turn("At last.", failures=faults)) as t:
        for _ in faults:
            await t.fail()
        assert (await t.ask()).content[0]["text"] == "At last."


async def test_a_history_that_the_api_refuses_is_said_so() -> None:
    """The server of the tests refuses as the real one does, or it would prove nothing."""
    async with talk(Turn(calls=[Call("ls")]), Turn("Done.")) as t:
        reply = await t.ask()
        with pytest.raises(ModelError) as caught:
            await t.ask({"role": "assistant", "content": list(reply.content)})
        with pytest.raises(ModelError) as orphan:
            await t.ask(answer_to(reply, "a")[1])
    assert caught.value.kind is Kind.INVALID_REQUEST
    assert "must be followed by tool" in caught.value.message
    assert "preceding message" in orphan.value.message


async def refused(*, key: str = "key-1", base_url: str) -> ModelError:
    model = OpenAiModel(MODEL, api_key=key, base_url=base_url, stall_s=5)
    try:
        with pytest.raises(ModelError) as caught:
            await model.reply(asking())
    finally:
        await model.aclose()
    return caught.value
