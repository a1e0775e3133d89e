"""Makes one INSERT of many equal ones: planning a statement costs more than its row.

The merged one takes each parameter as a list and unnests it, so that its text and its plan do not
grow with the rows: 50 rows cost about twice as much as one.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

_PLAIN_INSERT = re.compile(r"(INSERT INTO (\w+)\s.+?\s)VALUES\s*(\([^()]*\))", re.DOTALL)
_PARAMETER = re.compile(r"\$(\w+)")


class _Statement(Protocol):
    sql: str
    parameters: dict[str, Any]


S = TypeVar("S", bound=_Statement)


@cache
def plain_insert_into(sql: str) -> str | None:
    """The table, when this is `INSERT INTO table (…) VALUES (…)` and nothing more.

    Such a statement reads nothing and returns nothing: it may run at any time before the first
    statement that names its table.
    """
    match = _PLAIN_INSERT.fullmatch(sql)
    return match[2] if match else None


@cache
def mentions(sql: str, table: str) -> bool:
    return re.search(rf"\b{table}\b", sql, re.IGNORECASE) is not None


def units(inserts: Sequence[S]) -> Iterator[list[S]]:
    """Plain inserts, those that can be merged together."""
    by_sql: dict[str, list[S]] = {}
    for statement in inserts:
        by_sql.setdefault(statement.sql, []).append(statement)
    yield from by_sql.values()


def merged(unit: Sequence[S]) -> tuple[str, dict[str, Any]]:
    """One statement that does what all of `unit` do."""
    if len(unit) == 1:
        return unit[0].sql, unit[0].parameters
    names = unit[0].parameters
    columns = {name: [statement.parameters[name] for statement in unit] for name in names}
    return _unnesting(unit[0].sql), columns


@cache
def _unnesting(sql: str) -> str:
    match = _PLAIN_INSERT.fullmatch(sql)
    assert match is not None
    values = match[3].removeprefix("(").removesuffix(")")
    return match[1] + "SELECT " + _PARAMETER.sub(r"unnest($\1)", values)
