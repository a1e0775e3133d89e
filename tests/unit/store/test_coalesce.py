"""Equal inserts become one statement; nothing else changes its place."""

from dataclasses import dataclass, field
from typing import Any

from agentd.store.coalesce import merged, plain_insert_into, units


@dataclass
class Statement:
    sql: str
    parameters: dict[str, Any] = field(default_factory=dict)


INSERT = "INSERT INTO runs (id, n) VALUES ($id, $n)"


def test_only_a_bare_insert_of_values_is_plain() -> None:
    assert plain_insert_into(INSERT) == "runs"
    assert plain_insert_into(INSERT + " ON CONFLICT (id) DO NOTHING") is None
    assert plain_insert_into(INSERT + " RETURNING id") is None
    assert plain_insert_into("INSERT INTO runs (id) SELECT $id") is None
    assert plain_insert_into("UPDATE runs SET n = $n") is None


def test_equal_inserts_become_one_that_takes_lists() -> None:
    statements = [Statement(INSERT, {"id": name, "n": n}) for n, name in enumerate("abc")]
    (unit,) = units(statements)
    sql, parameters = merged(unit)
    assert sql == "INSERT INTO runs (id, n) SELECT unnest($id), unnest($n)"
    assert parameters == {"id": ["a", "b", "c"], "n": [0, 1, 2]}


def test_different_inserts_stay_apart() -> None:
    other = "INSERT INTO events (id) VALUES ($id)"
    found = list(units([Statement(INSERT), Statement(other), Statement(INSERT)]))
    assert [[each.sql for each in unit] for unit in found] == [[INSERT, INSERT], [other]]
