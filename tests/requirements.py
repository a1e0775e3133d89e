"""Which promises there are, which tests show them, and what is missing."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
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


def marks(folder: Path = _HERE) -> list[Mark]:
    """The marks of all tests in a folder, in the files where pytest looks for tests."""
    return [
        mark
        for file in sorted(folder.rglob("test_*.py"))
        for mark in marked(file.read_text(encoding="utf-8"), file.relative_to(folder.parent))
    ]


def marked(source: str, path: Path | str) -> list[Mark]:
    """The marks of one file: on a test, on a class of tests, or on the whole as `pytestmark`.

    What is marked and is no test for pytest does not count: it would show nothing.
    """
    return [
        mark
        for node in ast.walk(ast.parse(source))
        for expression in _marking(node)
        for mark in _marks_of(expression, path)
    ]


def problems(found: Iterable[Mark], requirements: Mapping[str, Requirement]) -> list[str]:
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


def _marking(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return node.decorator_list if name.startswith("test") else []
        case ast.ClassDef(name=name):
            return node.decorator_list if name.startswith("Test") else []
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            return [value]
        case _:
            return []


def _marks_of(expression: ast.expr, path: Path | str) -> Iterator[Mark]:
    # Walked, because a mark also stands in a list, or inside pytest.param(…, marks=…).
    for node in ast.walk(expression):
        match node:
            case ast.Call(func=ast.Attribute(attr="requirement"), args=args):
                for argument in args:
                    yield Mark(_id(argument), f"{path}:{node.lineno}")
            case _:
                pass


def _id(argument: ast.expr) -> str:
    # An id that is not written out can not be checked: its source text is no id, so it is reported.
    return str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
