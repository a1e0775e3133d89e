"""Output in pieces is redacted as if it had come at once."""

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.redacted_stream import RedactedStream
from agentd.domain.redactor import Redactor, Secret

_KEY = "s3cret-\u00fc-4f9a81c07e"
_REDACTOR = Redactor([Secret("KEY", _KEY), Secret("LONG", f"{_KEY}-and-more"), Secret("A", "aaab")])
_PARTS = [_KEY, "s3cr", "et-", "a", "aaa", "b", "-and-more", "\n", "\r\n", "x", "\u00fc", "\udcff"]


def streamed(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = RedactedStream(redactor)
    return b"".join([*(stream.feed(piece) for piece in pieces), stream.end()])


@given(
    st.lists(
        st.sampled_from(_PARTS),
        max_size=25,
    ),
    st.data(),
)
def test_however_it_is_cut_nothing_gets_through(parts: list[str], data: Any) -> None:
    text = "".join(parts)
    raw = text.encode(errors="surrogateescape")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    # As read: bytes that stand together by chance may be a character.
    whole = raw.decode(errors="surrogateescape")
    expected = _REDACTOR.redact(whole).encode(errors="surrogateescape")
    assert streamed(_REDACTOR, pieces) == expected


def test_every_byte_may_come_alone() -> None:
    text = f"one {_KEY} two\n{base64.encodebytes(_KEY.encode() * 5).decode()} three"
    raw = text.encode()
    shown = streamed(_REDACTOR, [raw[n : n + 1] for n in range(len(raw))])
    assert shown == _REDACTOR.redact(text).encode()
    assert b"4f9a" not in shown


def test_what_can_be_no_secret_is_given_on_at_once() -> None:
    stream = RedactedStream(_REDACTOR)
    assert stream.feed(b"Go on? [y/n] ") == b"Go on? [y/n] "
    assert stream.feed(b"s3c") == b""
    assert stream.feed(b"ond ") == b"s3cond "
    assert stream.end() == b""


def test_without_secrets_bytes_pass_as_they_are() -> None:
    assert RedactedStream(Redactor()).feed(b"\xff\x00\xfc") == b"\xff\x00\xfc"
