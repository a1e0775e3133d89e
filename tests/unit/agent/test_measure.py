"""The bound of a request's input is never below what any tokenizer on bytes could count."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.measure import Measure
from agentd.domain.usage import Usage
from agentd.models.model import ModelRequest

_TEXT = st.text(max_size=40)
_BLOCKS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, _TEXT), min_size=1)


def request(messages: list[dict[str, Any]], model: str = "m") -> ModelRequest:
    tools = [{"name": "ls", "description": "List.", "input_schema": {"type": "object"}}]
    return ModelRequest(model, "You work.", tools, messages, 100, 0)


def bytes_said(asked: ModelRequest) -> int:
    """A token for each byte of text: the dearest tokenizer that there can be."""
    texts = [block["text"] for message in asked.messages for block in message["content"]]
    return len(asked.system.encode()) + sum(len(text.encode()) for text in texts)


@st.composite
def conversations(draw: Any) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 6))
    roles = ["user", "assistant"] * 3
    return [{"role": roles[n], "content": draw(_BLOCKS)} for n in range(count)]


@settings(max_examples=100, deadline=None)
@given(conversations(), st.data())
def test_no_tokenizer_counts_more(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    measure = Measure()
    for length in range(1, len(messages) + 1):
        asked = request(messages[:length])
        truth = bytes_said(asked)
        assert measure.input_tokens(asked) >= truth
        written, read = data.draw(st.integers(0, truth)), data.draw(st.integers(0, truth))
        written, read = min(written, truth), min(read, truth - min(written, truth))
        usage = Usage(truth - written - read, 7, written, read)
        measure.learn(asked, usage)
        assert measure.input_tokens(asked) >= truth


def test_what_was_counted_makes_the_bound_tight() -> None:
    measure, messages = Measure(), [{"role": "user", "content": [text("word " * 1000)]}]
    first = request(messages)
    assert measure.input_tokens(first) > 5000
    measure.learn(first, Usage(200, 5, 300, 500))
    more = [*messages, {"role": "assistant", "content": [text("Yes.")]}]
    bound = measure.input_tokens(request([*more, {"role": "user", "content": [text("On.")]}]))
    assert 1000 < bound < 1200
    longer = [{"role": "user", "content": [*messages[0]["content"], text("And this.")]}]
    assert 1000 < measure.input_tokens(request(longer)) < 1100


def test_another_start_or_another_model_is_measured_anew() -> None:
    measure, asked = Measure(), request([{"role": "user", "content": [text("x" * 5000)]}])
    measure.learn(asked, Usage(10))
    assert measure.input_tokens(request(list(asked.messages), model="other")) > 5000
    changed = request([{"role": "user", "content": [text("y" * 5000)]}])
    assert measure.input_tokens(changed) > 5000


def test_a_provider_that_counts_nothing_teaches_nothing() -> None:
    measure, asked = Measure(), request([{"role": "user", "content": [text("x" * 5000)]}])
    measure.learn(asked, Usage())
    assert measure.input_tokens(asked) > 5000


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
