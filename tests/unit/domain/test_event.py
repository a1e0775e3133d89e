"""The body of an event is what every store can keep."""

import json

from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.event import storable

_TEXT = st.text(st.characters(exclude_categories=[]))  # halves of surrogate pairs included
_BODIES = st.dictionaries(
    _TEXT, st.recursive(_TEXT | st.integers() | st.none(), st.lists, max_leaves=12), max_size=6
)


@given(_BODIES)
def test_a_body_can_be_written_in_utf_8_and_is_then_left_alone(
    body: dict[str, object],
) -> None:
    once = storable(body)
    json.dumps(once, ensure_ascii=False).encode()
    assert storable(once) is once


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_whole_stays_as_it_is(body: dict[str, str]) -> None:
    assert storable(body) is body


def test_half_a_pair_becomes_the_replacement_character() -> None:
    assert storable({"text": "a\ud83db"}) == {"text": "a�b"}
