"""apply_patch: several files at once, all or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from agentd.domain.clock import Clock
from agentd.sandbox.edits import Edits
from agentd.toolkit.definition import Effect, tool
from agentd.tools.fs.patch_format import parse_patch
from agentd.tools.fs.patch_tree import PatchedFile, Tree


@dataclass(frozen=True, slots=True)
class PatchApplied:
    message: str
    files: list[PatchedFile]


def _happened(edits: Edits, patch: str) -> PatchApplied | None:
    result = edits.happened(_asked(patch))
    if result is None:
        return None
    return PatchApplied(result["message"], [PatchedFile(**each) for each in result["files"]])


def _forget_old(edits: Edits, clock: Clock) -> None:
    edits.forget_old(clock)


@tool(group="fs", effect=Effect.RECONCILABLE, reconcile=_happened, start=_forget_old)
def apply_patch(
    edits: Edits,
    patch: Annotated[
        str, Field(min_length=1, description="From *** Begin Patch to *** End Patch.")
    ],
) -> PatchApplied:
    """Change several files at once: add, update, move and delete them. All of it, or nothing.

    *** Begin Patch
    *** Add File: new.txt
    +every line of it begins with +
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ def greet():
     an unchanged line before
    -a line that goes
    +a line that comes
     an unchanged line after
    *** Delete File: old.txt
    *** End Patch

    Move to is optional. @@ may name a line that stands before the change; several hunks go in the
    order of the file. *** End of File after a hunk says that it ends there.
    """
    parts = parse_patch(patch)
    with edits.turn():
        tree = Tree(edits)
        files = tree.take(parts)
        result = PatchApplied(_message(files), files)
        edits.apply(tree.changes(), _asked(patch), asdict(result))
    return result


def _asked(patch: str) -> Mapping[str, Any]:
    return {"patch": patch}


def _message(files: Sequence[PatchedFile]) -> str:
    lines = [
        f"{each.change} {each.path}" + (f" to {each.moved_to}" if each.moved_to else "")
        for each in files
    ]
    return "Applied the patch:\n" + "\n".join(lines)
