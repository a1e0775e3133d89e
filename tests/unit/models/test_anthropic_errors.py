"""models/anthropic_errors.py: whatever goes wrong is one ModelError that says what to do."""

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.models.anthropic import AnthropicModel
from tests.anthropic_talk import MODEL, asking, talk
from tests.messages_api import Call, Failure, MessagesApi, Turn

Kind = ModelErrorKind

STATUSES = [
    (400, "invalid_request_error", Kind.INVALID_REQUEST, False),
    (401, "authentication_error", Kind.AUTHENTICATION, False),
    (402, "billing_error", Kind.BILLING, False),
    (403, "permission_error", Kind.AUTHENTICATION, False),
    (404, "not_found_error", Kind.INVALID_REQUEST, False),
    (408, "timeout_error", Kind.TIMEOUT, True),
    (409, "conflict_error", Kind.SERVER, True),
    (413, "request_too_large", Kind.INVALID_REQUEST, False),
    (422, "invalid_request_error", Kind.INVALID_REQUEST, False),
    (429, "rate_limit_error", Kind.RATE_LIMIT, True),
    (500, "api_error", Kind.SERVER, True),
    (502, "api_error", Kind.SERVER, True),
    (503, "overloaded_error", Kind.OVERLOADED, True),
    (504, "timeout_error", Kind.TIMEOUT, True),
    (529, "overloaded_error", Kind.OVERLOADED, True),
]
NONSENSE = [
    "{}",
    "[]",
    "null",
    "7",
    '"x"',
    "{broken",
    '{"type": "message_start"}',
    '{"type": "message_delta"}',
    '{"type": "content_block_start", "index": 0}',
    '{"type": "content_block_start", "index": 1, "content_block": 3}',
    '{"type": "content_block_delta"}',
    '{"type": "content_block_delta", "index": 0, "delta": {}}',
    '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}',
    '{"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}}',
    '{"type": "content_block_stop"}',
]


@pytest.mark.parametrize(("status", "type_", "kind", "retryable"), STATUSES)
async def test_each_status_is_one_kind_and_is_asked_for_once(
    status: int, type_: str, kind: Kind, *, retryable: bool
) -> None:
    async with talk(Failure(status, type_, "the provider's words")) as t:
        error = await t.fail()
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert error.message == "the provider's words"
    assert error.request_id is not None
    assert t.api.answered == 1


async def test_a_bad_request_about_credit_is_about_billing() -> None:
    words = "Your credit balance is too low to access the Anthropic API."
    async with talk(Failure(400, "invalid_request_error", words)) as t:
        error = await t.fail()
    assert error.kind is Kind.BILLING
    assert error.hint is not None


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after": "1.5"}, 1.5, 1.5),
        ({"retry-after-ms": "250"}, 0.25, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25, 0.25),
    ],
)
async def test_the_wait_that_the_provider_asks_for(
    headers: dict[str, str], least_s: float, most_s: float
) -> None:
    async with talk(Failure(429, "rate_limit_error", headers=headers)) as t:
        error = await t.fail()
    assert error.retry_after_s is not None
    assert least_s <= error.retry_after_s <= most_s


async def test_the_wait_may_be_a_moment() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=60)
    headers = {"retry-after": format_datetime(moment, usegmt=True)}
    async with talk(Failure(529, headers=headers)) as t:
        error = await t.fail()
    assert error.retry_after_s is not None
    assert 30 < error.retry_after_s <= 60


@pytest.mark.parametrize("value", ["soon", "-3", "", "nan", "Fri, 31 Foo 2026 25:00:00 GMT"])
async def test_a_wait_that_makes_no_sense_is_no_wait(value: str) -> None:
    async with talk(Failure(429, headers={"retry-after": value})) as t:
        assert (await t.fail()).retry_after_s is None


async def test_a_moment_that_has_passed_is_no_wait_at_all() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    async with talk(Failure(429, headers=headers)) as t:
        assert (await t.fail()).retry_after_s == 0


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("overloaded_error", Kind.OVERLOADED),
        ("rate_limit_error", Kind.RATE_LIMIT),
        ("api_error", Kind.SERVER),
        ("timeout_error", Kind.TIMEOUT),
        ("authentication_error", Kind.AUTHENTICATION),
        ("invalid_request_error", Kind.INVALID_REQUEST),
        ("error_of_tomorrow", Kind.SERVER),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_known_by_its_type(
    type_: str, kind: Kind
) -> None:
    async with talk(Failure(type=type_, message="not now", fault="error")) as t:
        error = await t.fail()
    assert (error.kind, error.message, error.status) == (kind, "not now", 200)


@pytest.mark.parametrize("fault", ["cut", "reset", "garbage"])
@pytest.mark.parametrize("after_events", [0, 1, 4, 9])
async def test_a_stream_that_ends_too_early_is_no_reply(fault: Any, after_events: int) -> None:
    async with talk(Failure(fault=fault, after_events=after_events)) as t:
        error = await t.fail()
    assert error.kind in (Kind.BROKEN_STREAM, Kind.CONNECTION)
    assert error.retryable


async def test_a_reply_without_a_stop_reason_is_no_reply() -> None:
    """Every event came but the last: what is there can not be told from a whole reply."""
    async with talk(Failure(fault="cut", after_events=99)) as whole:
        assert (await whole.ask()).stop_reason == "end_turn"
    for missing in (1, 2):
        failure = Failure(fault="cut", after_events=12 - missing)
        async with talk(failure) as t:
            assert (await t.fail()).kind is Kind.BROKEN_STREAM


@pytest.mark.parametrize("data", NONSENSE)
async def test_events_that_make_no_sense_are_a_broken_stream(data: str) -> None:
    async with talk(Failure(fault="garbage", message=data)) as t:
        assert (await t.fail()).kind is Kind.BROKEN_STREAM


@pytest.mark.parametrize("fault", ["silent", "stall"])
async def test_silence_is_a_timeout(fault: Any) -> None:
    async with talk(Failure(fault=fault), stall_s=0.2) as t:
        error = await t.fail()
        await t.api.until(lambda: t.api.disconnects == 1)
    assert error.kind is Kind.TIMEOUT
    assert error.retryable


async def test_a_connection_that_closes_without_an_answer() -> None:
    async with talk(Failure(fault="drop")) as t:
        assert (await t.fail()).kind is Kind.CONNECTION


async def test_nobody_listens() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        error = await refused(base_url=url)
    assert (error.kind, error.status) == (Kind.CONNECTION, None)


@pytest.mark.parametrize("key", ["sk-ant-…", "two\nlines", "ключ", "a\x7fb"])
async def test_a_key_that_no_header_can_carry_is_never_shown(key: str) -> None:
    async with MessagesApi() as api:
        error = await refused(key=key, base_url=api.url)
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
    async with talk(Turn(calls=[Call("ls")]), Turn("Done.")) as t:
        reply = await t.ask()
        with pytest.raises(ModelError) as caught:
            await t.ask({"role": "assistant", "content": list(reply.content)})
    assert caught.value.kind is Kind.INVALID_REQUEST
    assert "tool_result" in caught.value.message


async def refused(*, key: str = "key-1", base_url: str) -> ModelError:
    model = AnthropicModel(MODEL, api_key=key, base_url=base_url, stall_s=5)
    try:
        with pytest.raises(ModelError) as caught:
            await model.reply(asking())
    finally:
        await model.aclose()
    return caught.value
