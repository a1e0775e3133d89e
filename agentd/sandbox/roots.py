"""The folders that tools may reach: the workspace, and what its owner adds to it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Root:
    """A folder. `writable`: tools and commands may change what is in it."""

    path: Path
    writable: bool = True
