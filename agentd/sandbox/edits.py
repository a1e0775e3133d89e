"""Edits: changes to files that a crash in the middle does not leave half done.

turn → look at the files → receipt → files → result. Killed before the receipt, nothing happened;
killed after it, the next run does the rest and has the same result.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.changes import FILE_MOST_BYTES, Change, Changing
from agentd.sandbox.receipts import Planned, Receipt, Receipts, content_hash
from agentd.sandbox.walk import os_failure
from agentd.sandbox.workspace import Standing, Workspace

_WAIT_S = 30.0
_LOOK_S = 0.01
_KEPT_S = 7 * 24 * 3600.0

Asked = Mapping[str, Any]


class Edits(Capability):
    """Of one call. `folder`: where receipts and the lock lie, in the home. Every method blocks."""

    __slots__ = ("_folder", "_group", "_key", "_mark", "_receipts", "_workspace")

    def __init__(self, workspace: Workspace, folder: Path, key: CallKey) -> None:
        self._workspace = workspace
        self._folder = folder
        self._key = key.text
        self._group = key.text.rpartition("/")[0]  # the task; none when a person calls
        self._mark = hashlib.sha256(key.text.encode()).hexdigest()[:16]
        self._receipts = Receipts(folder)

    @contextmanager
    def turn(self) -> Generator[None]:
        """One edit of a home at a time, in all its processes: none is lost. Raises ToolError."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise os_failure(error, str(self._folder)) from error
        try:
            _lock(fd)
            yield
        finally:
            os.close(fd)

    def look(self, path: str) -> Standing:
        """What is at the path now. Raises ToolError for what can not be changed."""
        return self._workspace.look(path, most_bytes=FILE_MOST_BYTES)

    def existing(self, path: str, *, itself: bool = False) -> tuple[Standing, bytes]:
        """The same for a file that must be there. `itself`: not through a link."""
        if itself:
            self._workspace.refuse_link(path)
        there = self.look(path)
        if there.content is None:
            self._workspace.find(path)
            raise ToolError("changed_meanwhile", f"{path} was not there a moment ago")
        return there, there.content

    def apply(self, changes: Sequence[Change], asked: Asked, result: dict[str, Any]) -> None:
        """Change all the files, in the turn. Raises ToolError; then nothing was changed."""
        self._receipts.forget(self._group, None if self._group else self._key)
        try:
            self._receipts.save(self._group, self._key, digest(asked), result, changes)
        except OSError as error:
            self._receipts.forget(self._group, self._key)
            raise os_failure(error, str(self._folder)) from error
        try:
            Changing(self._workspace, changes, self._mark).carry_out()
        except BaseException:
            self._receipts.forget(self._group, self._key)
            raise
        if not self._group:
            self._receipts.forget(self._group, self._key)

    def happened(self, asked: Asked) -> dict[str, Any] | None:
        """The result of this call when it had begun, which is now complete; None: it had not.

        Raises ToolError(outcome_unknown).
        """
        with self.turn():
            try:
                receipt = self._receipts.find(self._group, self._key)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ToolError("outcome_unknown", f"its receipt is damaged: {error}") from error
            if receipt is None or receipt.asked != digest(asked):
                return None
            self._complete(receipt)
            return receipt.result

    def forget_old(self, clock: Clock) -> None:
        """What nobody can ask for any more."""
        self._receipts.forget_older(_KEPT_S, clock.now().timestamp())

    def _complete(self, receipt: Receipt) -> None:
        states = {each.path: self._state(each) for each in receipt.changes}
        if "other" in states.values():
            raise _unknown(states)
        left = [each for each in receipt.changes if states[each.path] == "old"]
        changes = [self._change(each) for each in left]
        Changing(self._workspace, [_bare(each) for each in receipt.changes], self._mark).clear()
        try:
            Changing(self._workspace, changes, self._mark).carry_out()
        except ToolError as error:
            raise _unknown(states, error) from error

    def _state(self, planned: Planned) -> str:
        try:
            there = content_hash(self.look(planned.path).content)
        except ToolError:
            return "other"
        if there == planned.new:
            return "new"
        return "old" if there == planned.old else "other"

    def _change(self, planned: Planned) -> Change:
        there = self.look(planned.path)
        return Change(planned.path, there.content, planned.content, planned.mode)


def digest(asked: Asked) -> str:
    """Of a call's arguments, in hex."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _bare(planned: Planned) -> Change:
    return Change(planned.path, None, planned.content, planned.mode)


def _lock(fd: int) -> None:
    for _ in range(round(_WAIT_S / _LOOK_S)):
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOOK_S)
    raise ToolError(
        "busy",
        f"another edit has not ended for {_WAIT_S:.0f} s; nothing was changed",
        next_action_hint="Try again later.",
    )


_SAYS = {"new": "changed", "old": "not changed", "other": "changed by somebody else"}


def _unknown(states: Mapping[str, str], why: ToolError | None = None) -> ToolError:
    shown = "; ".join(f"{path}: {_SAYS[state]}" for path, state in states.items())
    because = f" ({why.message})" if why else ""
    return ToolError(
        "outcome_unknown",
        f"The daemon stopped in the middle of this edit and could not finish it{because}. {shown}.",
        next_action_hint="read these files, then change what is missing.",
    )
