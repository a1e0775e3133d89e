"""The output of a process on the disk: pieces of a fixed size, of which the last ones are kept.

An offset counts bytes from the start of the output, whatever is still there of it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

_PIECES = 5


@dataclass(frozen=True, slots=True)
class Part:
    """`start`: the offset of `data`. `end`: how long the output is so far."""

    data: bytes
    start: int
    end: int


class ProcessLog:
    """`path`: of all its files, without their numbers. `most_bytes`: how much is kept."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._piece_bytes = max(1, most_bytes // (_PIECES - 1))  # all but the one being filled
        self._end = self._length()

    def append(self, data: bytes) -> None:
        while data:
            number, filled = divmod(self._end, self._piece_bytes)
            now, data = data[: self._piece_bytes - filled], data[self._piece_bytes - filled :]
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            with os.fdopen(os.open(self._piece(number), flags, 0o600), "wb") as file:
                file.write(now)
            self._end += len(now)
            if not filled:
                self._piece(number - _PIECES).unlink(missing_ok=True)

    def read(self, offset: int, most_bytes: int) -> Part:
        """From `offset`, or from where what is kept begins. A negative one counts from the end."""
        end = self._length()
        first = min((number * self._piece_bytes for number in self._numbers()), default=0)
        start = min(max(end + offset if offset < 0 else offset, first), end)
        data, here = b"", start
        while len(data) < most_bytes and here < end:
            number, within = divmod(here, self._piece_bytes)
            with self._piece(number).open("rb") as file:
                file.seek(within)
                read = file.read(min(most_bytes - len(data), self._piece_bytes - within))
            if not read:
                break
            data, here = data + read, here + len(read)
        return Part(data, start, end)

    def remove(self) -> None:
        for number in self._numbers():
            self._piece(number).unlink(missing_ok=True)

    def _length(self) -> int:
        last = max(self._numbers(), default=None)
        if last is None:
            return 0
        return last * self._piece_bytes + self._piece(last).stat().st_size

    def _numbers(self) -> list[int]:
        found = self._path.parent.glob(f"{self._path.name}.*")
        return [int(path.suffix[1:]) for path in found if path.suffix[1:].isdecimal()]

    def _piece(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
