"""Which promises there are, which tests show them, and what is missing."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of the inventory. `due`: it must hold now."""

    id: str
    source: str
    sentence: str
    due: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """One id that a test names in `@pytest.mark.requirement(…)`."""

    id: str
    place: str


def read() -> dict[str, Requirement]:
    """Every row of the inventory, by its id."""
    rows = tomllib.loads((_HERE / "requirements.toml").read_text(encoding="utf-8"))
    return {name: Requirement(name, **row) for name, row in rows.items()}


REQUIREMENTS: Mapping[str, Requirement] = read()


def marks(folder: Path = _HERE) -> Iterator[Mark]:
    """The marks of all tests in a folder."""
    for file in sorted(folder.rglob("test_*.py")):
        yield from marks_in(file.read_text(encoding="utf-8"), str(file))


def marks_in(source: str, name: str) -> Iterator[Mark]:
    """The marks on the test functions and classes of one file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from _ids(decorator, f"{name}:{decorator.lineno}")


def problems(found: Iterable[Mark], requirements: Mapping[str, Requirement]) -> Sequence[str]:
    """Due ids that no test names, and names that are no id."""
    named = list(found)
    shown = {mark.id for mark in named}
    return [
        *(
            f"{each.id} is due and no test shows it: {each.sentence}"
            for each in requirements.values()
            if each.due and each.id not in shown
        ),
        *(f"{mark.place}: {mark.id} is no id" for mark in named if mark.id not in requirements),
    ]


def _ids(decorator: ast.expr, place: str) -> Iterator[Mark]:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="requirement"), args=args):
            for argument in args:
                if isinstance(argument, ast.Constant):
                    yield Mark(str(argument.value), place)
        case _:
            pass
