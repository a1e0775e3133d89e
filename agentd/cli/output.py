"""Tables, JSON and colours. On a pipe: plain text, no colour, nothing that moves."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

import click

from agentd.domain.jsons import is_object

_STYLES = {
    "pending": "cyan",
    "running": "blue",
    "waiting": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "magenta",
}


# C0 and C1 but for tab and line feed, shown as their pictures.
_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    # What breaks a line, and what turns the order of the words around.
    **dict.fromkeys([*range(0x2028, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
}


def choice(kind: type[StrEnum]) -> "click.Choice[str]":
    """The values of an enumeration, as people type them; click itself would take its names."""
    return click.Choice([str(each) for each in kind])


def is_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(value: object) -> None:
    """One JSON document on standard output; times as ISO 8601 in UTC."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2 if is_terminal() else None)
    click.echo(for_people(text))  # JSON leaves the control characters beyond ASCII as they are


def plain(value: Any) -> Any:
    """The value as JSON types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value))
        return {name: plain(getattr(value, name)) for name in names}
    if is_object(value):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        several = cast("Iterable[object]", value)
        return [plain(each) for each in several]
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Aligned columns; with colours and cut to the width of the window on a terminal."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        click.echo(empty, err=True)
    elif is_terminal():
        _print_rich(columns, cells)
    else:
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        for row in [list(columns), *cells]:
            line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
            click.echo(line.rstrip())


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """One thing in full: a name and a value for each line, those without a value left out."""
    shown = [(name, _cell(value)) for name, value in fields if value not in (None, "", (), [])]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        indented = text.replace("\n", "\n" + " " * (width + 2))
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {indented}")


def coloured(state: str) -> str:
    return click.style(state, fg=_STYLES.get(state))


def short(identifier: str) -> str:
    """The end of an id, which tells ids apart; commands take it in place of the whole."""
    return identifier[-8:] if len(identifier) == 36 else identifier


def one_line(text: str, most: int = 80) -> str:
    line = harmless(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def harmless(text: str) -> str:
    """The text without what a terminal would obey: the model writes much of what is shown."""
    return text.translate(_CONTROLS)


def for_people(text: str) -> str:
    """As `harmless` on a terminal; in a pipe every byte counts."""
    return harmless(text) if is_terminal() else text


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | tuple):
        return ", ".join(harmless(str(each)) for each in cast("Iterable[object]", value))
    return harmless(str(value))


def _print_rich(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - costs 60 ms that a pipe need not pay
    from rich.table import Table  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        wide = name in ("title", "prompt", "task", "description", "value")
        table.add_column(name, no_wrap=not wide, overflow="ellipsis" if not wide else "fold")
    for row in cells:
        table.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in row))
    Console().print(table)
