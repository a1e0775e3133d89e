"""edit: one piece of a file becomes another."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from agentd.sandbox.changes import Change
from agentd.sandbox.edits import Edits
from agentd.toolkit.definition import Effect, tool
from agentd.tools.fs.replace import replace
from agentd.tools.fs.texts import decode

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FileEdited:
    """`lines`: where the replaced pieces began, from 0 as read counts them. `size`: bytes."""

    message: str
    path: str
    lines: list[int]
    size: int


def _happened(
    edits: Edits, path: str, old_text: str, new_text: str, replace_all: bool
) -> FileEdited | None:
    result = edits.happened(_asked(path, old_text, new_text, replace_all))
    return None if result is None else FileEdited(**result)


@tool(group="fs", effect=Effect.RECONCILABLE, reconcile=_happened)
def edit(
    edits: Edits,
    path: Annotated[str, Field(min_length=1, description="The file, from the workspace.")],
    old_text: Annotated[
        str, Field(description="The text to replace, as it stands there, without line numbers.")
    ],
    new_text: Annotated[str, Field(description="What is to stand in its place.")],
    replace_all: Annotated[
        bool, Field(description="Replace every occurrence, not exactly one.")
    ] = False,
) -> FileEdited:
    """Replace a piece of a text file; old_text must occur in it exactly once.

    Everything else stays as it is, line ends included: write plain line ends in old_text and
    new_text whatever the file has.
    """
    with edits.turn():
        there, content = edits.existing(path)
        text = decode(content, path)
        found = replace(text.text, old_text, new_text, every=replace_all, path=path)
        data = text.encode(found.text)
        result = FileEdited(
            _message(there.path, found.lines), there.path, [*found.lines], len(data)
        )
        change = Change(there.path, content, data, there.mode)
        edits.apply([change], _asked(path, old_text, new_text, replace_all), asdict(result))
    return result


def _asked(path: str, old_text: str, new_text: str, replace_all: bool) -> Mapping[str, Any]:
    return {"path": path, "old_text": old_text, "new_text": new_text, "replace_all": replace_all}


def _message(path: str, lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"Edited {path} at line {lines[0]}."
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"Edited {path} at lines {', '.join(map(str, lines[:_SHOWN]))}{more}."
