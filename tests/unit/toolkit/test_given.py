"""Schemas that others wrote: whatever they say, a check comes to its end, and soon."""

from typing import Any

import pytest

from agentd.toolkit.given import GivenSchema

pytestmark = pytest.mark.timeout(20)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def doubling(**more: Any) -> dict[str, Any]:
    """Each definition asks for the next one twice."""
    names = {
        f"d{n}": {**more, "anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, **more} for n in range(60)
    }
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**names, "d60": False}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(), 1),
        (doubling(**{"$schema": _DIALECT}), 1),
        ({"properties": {"a": {"uniqueItems": True}}}, [{"k": n} for n in range(20_000)]),
        ({"properties": {"a": {"items": {"enum": [*range(30_000)]}}}}, [29_999] * 300_000),
    ],
    ids=["doubling", "in a dialect", "unique", "enum"],
)
def test_a_check_that_would_never_end_is_given_up(schema: dict[str, Any], value: Any) -> None:
    assert GivenSchema(schema).problems({"a": value}) == []


@pytest.mark.parametrize(
    "schema", [{"type": "nope"}, {"properties": {"a": {"multipleOf": 0}}}, {"$ref": 5}]
)
def test_a_schema_that_is_none_finds_nothing_wrong(schema: dict[str, Any]) -> None:
    assert GivenSchema(schema).problems({"a": 1}) == []


def test_the_row_that_is_wrong_is_found_among_many() -> None:
    row = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}
    schema = GivenSchema({"properties": {"a": {"items": row}}})
    rows = [{"x": 1}] * 1000
    assert schema.problems({"a": [*rows, {}]}) == ["a[1000]: 'x' is a required property"]
