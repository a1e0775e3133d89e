"""A value of a program as JSON. Counts while it walks: a list can hold itself a million times."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

_DEPTH_MOST = 100
_LARGEST_INT = 1 << 1024  # beyond it json.dumps refuses to write digits


class NotJson(Exception):
    """The value is too large, too deep, or of a kind that JSON does not know."""


def jsonable(value: Any, *, most_bytes: int) -> Any:
    """`value` in what JSON knows; tuples and sets become arrays. Raises NotJson."""
    return _Walk(most_bytes).walk(value, 0)


class _Walk:
    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._left_bytes = most_bytes

    def walk(self, value: Any, depth: int) -> Any:
        if depth > _DEPTH_MOST:
            raise NotJson(f"it is nested deeper than {_DEPTH_MOST} levels")
        match value:
            case Mapping():
                return self._object(cast("Mapping[Any, Any]", value), depth)
            case list() | tuple() | AbstractSet():
                self._take(2)
                return [self._item(each, depth) for each in cast("list[Any]", value)]
            case _:
                return self._plain(value)

    def _plain(self, value: Any) -> Any:
        match value:
            case None | bool():
                self._take(4)
            case int() | float():
                return self._number(value)
            case str():
                self._take(len(value) + 2)
            case datetime() | date() | time():
                return value.isoformat()
            case timedelta():
                return value.total_seconds()
            case Decimal():
                return str(value)
            case _:
                raise NotJson(f"{_name(value)} is nothing that JSON knows")
        return value

    def _item(self, value: Any, depth: int) -> Any:
        self._take(1)
        return self.walk(value, depth + 1)

    def _number(self, value: float) -> float:
        if isinstance(value, float) and not math.isfinite(value):
            raise NotJson(f"{value} is no number that JSON knows")
        if isinstance(value, int) and abs(value) >= _LARGEST_INT:
            raise NotJson("an integer is too large")
        self._take(8)
        return value

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self._take(2)
        found: dict[str, Any] = {}
        for key, each in value.items():
            if not isinstance(key, str | int | float | bool | None):
                raise NotJson(f"the key of an object is {_name(key)}")
            name = key if isinstance(key, str) else self._named(key)
            self._take(len(name) + 4)
            found[name] = self.walk(each, depth + 1)
        return found

    def _named(self, key: float | None) -> str:
        if key is not None:
            self._number(key)  # an integer may have more digits than Python writes
        return str(key)

    def _take(self, size_bytes: int) -> None:
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise NotJson(f"it is larger than {self._most_bytes} bytes")


def _name(value: object) -> str:
    name = getattr(value, "name", None)
    kind = type(value).__name__
    return f"{kind.removeprefix('Monty')} {name}" if isinstance(name, str) else kind
