"""Reads `sql/<table>.sql`: named statements with `$name` parameters, no text built from values."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_HEADER = re.compile(r"^-- query: (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")


@dataclass(frozen=True, slots=True)
class Query:
    """One statement. `reads`: it changes nothing."""

    name: str
    sql: str

    @property
    def reads(self) -> bool:
        return self.sql.startswith("SELECT")


@cache
def load(table: str) -> dict[str, Query]:
    """The statements of `sql/<table>.sql` by name."""
    text = files("agentd.store").joinpath("sql", f"{table}.sql").read_text(encoding="utf-8")
    parts = _HEADER.split(text)
    return {
        name: Query(f"{table}.{name}", _COMMENT.sub("", body).strip().rstrip(";"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
