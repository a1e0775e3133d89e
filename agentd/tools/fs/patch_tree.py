"""What a patch makes of the files it names, worked out before any of them is touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from agentd.domain.errors import ToolError
from agentd.sandbox.changes import Change
from agentd.sandbox.edits import Edits
from agentd.tools.fs.patch_format import AddFile, DeleteFile, FileChange, UpdateFile
from agentd.tools.fs.patch_hunks import apply_hunks
from agentd.tools.fs.texts import decode

_FILES_MOST = 500
_BYTES_MOST = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """`moved_to`: its new path, when it has one."""

    path: str
    change: Literal["added", "updated", "deleted", "moved"]
    moved_to: str | None = None


@dataclass(slots=True)
class _Leaf:
    """A file: as it is, and as it is to be. `mode`: of what is to be."""

    path: str
    old: bytes | None
    new: bytes | None
    mode: int


class Tree:
    """The files that were named so far. A later part of a patch sees what an earlier one made."""

    def __init__(self, edits: Edits) -> None:
        self._edits = edits
        self._leaves: dict[str, _Leaf] = {}

    def take(self, parts: Sequence[FileChange]) -> list[PatchedFile]:
        """Work them out, in order. Raises ToolError."""
        if len(parts) > _FILES_MOST:
            raise ToolError("too_large", f"a patch may name {_FILES_MOST} files at the most")
        return [self._part(part) for part in parts]

    def changes(self) -> list[Change]:
        """What is to be done. Raises ToolError when that is nothing."""
        found = [
            Change(leaf.path, leaf.old, leaf.new, leaf.mode)
            for leaf in self._leaves.values()
            if leaf.old != leaf.new
        ]
        if not found:
            raise ToolError(
                "nothing_to_do",
                "the files are already as the patch wants them; nothing was changed",
            )
        if sum(len(each.new or b"") + len(each.old or b"") for each in found) > _BYTES_MOST:
            raise ToolError("too_large", f"a patch may change {_BYTES_MOST} bytes at the most")
        return found

    def _part(self, part: FileChange) -> PatchedFile:
        match part:
            case AddFile():
                return self._add(part)
            case DeleteFile():
                leaf = self._there(part.path, itself=True)
                leaf.new = None
                return PatchedFile(leaf.path, "deleted")
            case UpdateFile():
                return self._update(part)
            case _:
                assert_never(part)

    def _add(self, part: AddFile) -> PatchedFile:
        leaf = self._free(part.path)
        leaf.new = decode(b"", part.path).encode(part.content)
        return PatchedFile(leaf.path, "added")

    def _update(self, part: UpdateFile) -> PatchedFile:
        leaf = self._there(part.path, itself=part.move_to is not None)
        assert leaf.new is not None
        text = decode(leaf.new, part.path)
        data = text.encode(apply_hunks(text.text, part.hunks, part.path))
        if part.move_to is None:
            leaf.new = data
            return PatchedFile(leaf.path, "updated")
        leaf.new = None
        other = self._free(part.move_to)
        other.new, other.mode = data, leaf.mode
        return PatchedFile(leaf.path, "moved", other.path)

    def _there(self, path: str, *, itself: bool) -> _Leaf:
        """A file that must exist by now."""
        leaf = self._leaf(path)
        if leaf.old is not None:
            self._edits.existing(path, itself=itself)
        elif leaf.new is None:
            self._edits.existing(path)
        if leaf.new is None:
            raise ToolError("not_found", f"{path} was deleted by an earlier part of the patch")
        return leaf

    def _free(self, path: str) -> _Leaf:
        leaf = self._leaf(path)
        if leaf.new is not None:
            raise ToolError(
                "exists",
                f"{path} exists already; nothing was changed",
                next_action_hint="Use *** Update File:, or delete it first in the same patch.",
            )
        return leaf

    def _leaf(self, path: str) -> _Leaf:
        there = self._edits.look(path)
        return self._leaves.setdefault(
            there.path, _Leaf(there.path, there.content, there.content, there.mode)
        )
