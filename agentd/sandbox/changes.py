"""Several files changed at once: all of them, or none when one can not be.

Every new content is on the disk beside its file before the first name is moved; what fails then is
undone from memory.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from agentd.domain.errors import ToolError
from agentd.sandbox.walk import os_failure
from agentd.sandbox.workspace import Workspace, move_over, replaceable, write_beside

FILE_MOST_BYTES = 20 * 1024 * 1024  # that one edit takes: it is worked on in memory

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Change:
    """`old` and `new`: contents; None when there is no file. `mode`: of the file that is to be."""

    path: str
    old: bytes | None
    new: bytes | None
    mode: int


class Changing:
    """One carrying out. `mark`: names the files beside; the same when it is done again."""

    def __init__(self, workspace: Workspace, changes: Sequence[Change], mark: str) -> None:
        self._workspace = workspace
        # What is new comes first: a file that moves is there twice for a moment, never nowhere.
        self._changes = sorted(changes, key=lambda each: each.new is None)
        self._mark = mark
        self._made: list[str] = []
        self._done: list[Change] = []

    def carry_out(self) -> None:
        """Raises ToolError; then every file is as it was."""
        try:
            for change in self._changes:
                self._stage(change)
            for change in self._changes:
                self._move(change)
        except BaseException as error:
            if left := self._undo():
                raise ToolError(
                    "half_done",
                    f"the edit failed ({error}), and these files could not be put back: "
                    f"{', '.join(left)}",
                    next_action_hint="read them, then change what is missing.",
                ) from error
            raise

    def clear(self) -> None:
        """Remove what a process that was killed left beside the files."""
        for change in self._changes:
            with suppress(ToolError, OSError), self._workspace.place(change.path) as place:
                os.unlink(self._beside(change), dir_fd=place.directory)

    def _beside(self, change: Change) -> str:
        name = hashlib.sha256(os.fsencode(change.path)).hexdigest()[:16]
        return f".agentd-{self._mark}-{name}.tmp"

    def _stage(self, change: Change) -> None:
        if change.new is None:
            return
        with self._workspace.place(change.path, parents="make", made=self._made) as place:
            replaceable(place, change.path)
            try:
                write_beside(place, self._beside(change), change.new, change.mode)
            except OSError as error:
                raise os_failure(error, change.path) from error

    def _move(self, change: Change) -> None:
        with self._workspace.place(change.path) as place:
            self._check_unchanged(change)
            try:
                if change.new is None:
                    os.unlink(place.name, dir_fd=place.directory)
                else:
                    move_over(place, self._beside(change))
                self._done.append(change)
                os.fsync(place.directory)
            except OSError as error:
                raise os_failure(error, change.path) from error

    def _check_unchanged(self, change: Change) -> None:
        there = self._workspace.look(change.path, most_bytes=FILE_MOST_BYTES)
        if there.content != change.old:
            raise ToolError(
                "changed_meanwhile",
                f"somebody else changed {change.path} at the same moment; nothing was changed here",
                next_action_hint="read it again, then repeat the call.",
            )

    def _undo(self) -> list[str]:
        """The files that could not be put back."""
        self.clear()
        left: list[str] = []
        for change in reversed(self._done):
            try:
                if change.old is None:
                    self._workspace.delete(change.path)
                else:
                    self._workspace.write(change.path, change.old, mode=change.mode)
            except ToolError:
                _log.exception("a file could not be put back", path=change.path)
                left.append(change.path)
        for path in reversed(self._made):
            with suppress(ToolError, OSError), self._workspace.place(path) as place:
                os.rmdir(place.name, dir_fd=place.directory)
        return left
