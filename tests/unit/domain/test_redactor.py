"""A secret does not survive in any of its usual spellings, and nothing else is touched."""

import base64
import html
import json
import re
import textwrap
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentd.domain.redactor import Redactor, Secret

_KEY = "p+ss/w\"rd&='\\ü-4f9a81c07e"
_MARK = "[secret KEY]"
_REDACTOR = Redactor([Secret("KEY", _KEY)])
_SPELLINGS = {
    "plain": _KEY,
    "JSON": json.dumps(_KEY)[1:-1],
    "JSON as it is": json.dumps(_KEY, ensure_ascii=False)[1:-1],
    "HTML": html.escape(_KEY),
    "URL": quote(_KEY),
    "URL, all of it": quote(_KEY, safe=""),
    "form": quote_plus(_KEY),
    "URL in small letters": re.sub("%..", lambda found: found[0].lower(), quote(_KEY, safe="")),
    "hex": _KEY.encode().hex(),
    "HEX": _KEY.encode().hex().upper(),
}


@pytest.mark.parametrize("spelling", _SPELLINGS.values(), ids=_SPELLINGS)
def test_each_spelling_becomes_the_mark(spelling: str) -> None:
    assert _REDACTOR.redact(f"a {spelling} b") == f"a {_MARK} b"
    assert _REDACTOR.redact(spelling * 2) == _MARK * 2


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_found_whatever_stands_in_front_and_behind(before: int, encode: object) -> None:
    assert callable(encode)
    for after in range(4):
        text = encode(b"x" * before + _KEY.encode() + b"y" * after).decode()
        shown = _REDACTOR.redact(f"see {text}!")
        assert _MARK in shown
        left = shown.replace(_MARK, "").removeprefix("see ").removesuffix("!")
        assert len(left) <= 4 + before + after + 4  # what its neighbours share with it


@pytest.mark.parametrize("width", [10, 20, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_do_not_hide_it_and_stay_as_many(width: int, end: str) -> None:
    long = Redactor([Secret("KEY", _KEY * 6)])
    text = base64.b64encode(b"user:" + (_KEY * 6).encode()).decode()
    wrapped = end.join(textwrap.wrap(text, width))
    shown = long.redact(f"one{end}{wrapped}{end}last")
    assert _MARK in shown
    assert shown.count(end) == wrapped.count(end) + 2
    assert len(shown.replace(_MARK, "").replace(end, "")) < 25


@given(
    st.lists(st.text("abcdefgh+/=%[] \n", min_size=4, max_size=12), max_size=4),
    st.lists(st.sampled_from(["x", "ab", "[", "\n", "cd", "%2f", " "]), max_size=20),
    st.randoms(use_true_random=False),
)
def test_nothing_of_a_known_value_is_left_and_twice_is_once(
    values: list[str], around: list[str], dice: object
) -> None:
    values = [value for value in values if value.replace("\n", "")]
    # A value that holds a bracket may arise anew where a mark begins or ends.
    assume(not any(set(value) & set("[] ") for value in values))
    redactor = Redactor([Secret("N", value) for value in values])
    parts = [*around, *values, *values]
    dice.shuffle(parts)  # type: ignore[attr-defined]
    text = "".join(parts)
    shown = redactor.redact(text)
    assert not any(value.replace("\n", "") in shown.replace("\n", "") for value in values)
    assert redactor.redact(shown) == shown
    assert shown.count("\n") == text.count("\n")


@given(st.text())
@example("\r\n\r\n")
def test_a_text_without_secrets_is_the_same(text: str) -> None:
    assert _REDACTOR.redact(text) is text


def test_values_that_overlap_leave_no_rest() -> None:
    both = Redactor([Secret("A", "abcdef123456"), Secret("B", "123456uvwxyz")])
    assert both.redact("<abcdef123456uvwxyz>") == "<[secret A]>"


def test_a_value_that_stands_in_a_mark_is_left_alone() -> None:
    redactor = Redactor([Secret("API_TOKEN", "API_TOKEN"), Secret("B", "the-real-one")])
    assert redactor.redact("API_TOKEN=the-real-one") == "API_TOKEN=[secret B]"


def test_json_is_cleaned_at_every_depth() -> None:
    value = {"a": [1, None, {"b": f"x{_KEY}"}], _KEY: True}
    assert _REDACTOR.cleaned(value) == {"a": [1, None, {"b": f"x{_MARK}"}], _MARK: True}
    assert Redactor().cleaned(value) is value


def test_it_never_shows_what_it_knows() -> None:
    assert _KEY not in repr(_REDACTOR)


def test_bytes_that_are_no_text_are_a_secret_like_any_other() -> None:
    odd = b"caf\xe9-secret".decode(errors="surrogateescape")
    assert Redactor([Secret("K", odd)]).redact(f"<{odd}>") == "<[secret K]>"
