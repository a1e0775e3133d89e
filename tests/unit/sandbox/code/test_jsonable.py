"""Values of programs as JSON."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from agentd.sandbox.code.jsonable import NotJson, jsonable


def test_what_json_lacks_becomes_the_nearest_thing() -> None:
    value = {
        "t": (1, 2.5, None, True),
        "s": {3},
        1: datetime(2026, 1, 2, tzinfo=UTC),
        "d": date(2026, 1, 2),
        "l": timedelta(seconds=90),
        "n": Decimal("1.10"),
    }
    assert jsonable(value, most_bytes=1000) == {
        "t": [1, 2.5, None, True],
        "s": [3],
        "1": "2026-01-02T00:00:00+00:00",
        "d": "2026-01-02",
        "l": 90.0,
        "n": "1.10",
    }


def nested() -> list[Any]:
    top: list[Any] = []
    for _ in range(150):
        top = [top]
    return top


def shared() -> list[Any]:
    top: list[Any] = [0]
    for _ in range(40):
        top = [top, top]
    return top


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (nested(), "deeper than 100"),
        (shared(), "larger than 1000 bytes"),
        ("x" * 1000, "larger than 1000 bytes"),
        (b"bytes", "bytes is nothing"),
        (float("nan"), "no number"),
        (1 << 2000, "too large"),
        ({10**5000: 1}, "too large"),
        ({(1, 2): 3}, "key of an object is tuple"),
        (print, "nothing that JSON knows"),
    ],
)
def test_the_rest_is_refused(value: Any, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        jsonable(value, most_bytes=1000)
