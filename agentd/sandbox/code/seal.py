"""The seal on the state of a paused program: whoever loads it trusts it with the interpreter.

The key lies in the home, readable for its owner only, and is made when it is first needed.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
from functools import cached_property
from pathlib import Path

from agentd.private_files import write

_KEY_BYTES = 32


class Seal:
    """Seals text with the key in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, *parts: str) -> str:
        """The seal of these parts together, in hex."""
        made = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            data = part.encode()
            made.update(len(data).to_bytes(8))
            made.update(data)
        return made.hexdigest()

    def fits(self, seal: str, *parts: str) -> bool:
        return hmac.compare_digest(seal.encode(), self.of(*parts).encode())

    @cached_property
    def _key(self) -> bytes:
        # Written aside and linked: of two processes one wins, and nobody reads half a key.
        if not self._path.exists():
            aside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            aside.unlink(missing_ok=True)
            write(aside, secrets.token_bytes(_KEY_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(aside, self._path)
            aside.unlink()
        return self._path.read_bytes()
