"""Receipts: what an edit is about to do, on the disk before it does it.

A receipt is a folder with the new contents and `receipt.json`; it appears whole, by a rename. After
a crash it says what is still to be done, and what the call's result is.
"""

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentd.domain.ids import new_id
from agentd.private_files import sync, write
from agentd.sandbox.changes import Change

_FORM = "receipt.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """A change as a receipt knows it. `old`, `new`: hashes; None when there is no file."""

    path: str
    old: str | None
    new: str | None
    mode: int
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """`asked`: the digest of the call's arguments. `result`: what the call gives, as JSON."""

    asked: str
    result: dict[str, Any]
    changes: Sequence[Planned]


class Receipts:
    """The receipts of one home. `group`: the task; those of a group are forgotten together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(
        self, group: str, key: str, asked: str, result: dict[str, Any], changes: Sequence[Change]
    ) -> None:
        """Raises OSError."""
        beside = self._folder / f".{new_id()}.tmp"
        beside.mkdir(mode=0o700, parents=True)
        try:
            lines = [_put(beside, number, change) for number, change in enumerate(changes)]
            form = {"asked": asked, "result": result, "changes": lines}
            write(beside / _FORM, json.dumps(form).encode())
            sync(beside)
            beside.rename(self._path(group, key))
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        sync(self._folder)

    def find(self, group: str, key: str) -> Receipt | None:
        """Raises OSError, ValueError when it is there and can not be read."""
        folder = self._path(group, key)
        try:
            form = json.loads((folder / _FORM).read_bytes())
        except FileNotFoundError:
            return None
        changes = [
            Planned(
                path=_path(line["path"]),
                old=line["old"],
                new=line["new"],
                mode=line["mode"],
                content=None if line["new"] is None else (folder / str(number)).read_bytes(),
            )
            for number, line in enumerate(form["changes"])
        ]
        return Receipt(form["asked"], form["result"], changes)

    def forget(self, group: str, key: str | None = None) -> None:
        """That of `key`, or all of the group."""
        pattern = f"{_hash(group.encode())[:16]}-*"
        found = [self._path(group, key)] if key else list(self._folder.glob(pattern))
        for folder in found:
            shutil.rmtree(folder, ignore_errors=True)

    def forget_older(self, than_s: float, now_s: float) -> None:
        """Also what a killed process left half written."""
        if not self._folder.is_dir():
            return
        for folder in self._folder.iterdir():
            with suppress(OSError):
                if folder.is_dir() and now_s - folder.stat().st_mtime > than_s:
                    shutil.rmtree(folder, ignore_errors=True)

    def _path(self, group: str, key: str) -> Path:
        return self._folder / f"{_hash(group.encode())[:16]}-{_hash(key.encode())[:40]}"


def content_hash(content: bytes | None) -> str | None:
    return None if content is None else _hash(content)


def _put(folder: Path, number: int, change: Change) -> dict[str, Any]:
    if change.new is not None:
        write(folder / str(number), change.new)
    return {
        # A path may hold bytes that are no UTF-8.
        "path": base64.b64encode(os.fsencode(change.path)).decode(),
        "old": content_hash(change.old),
        "new": content_hash(change.new),
        "mode": change.mode,
    }


def _path(encoded: str) -> str:
    return os.fsdecode(base64.b64decode(encoded))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
