"""The folders that tools may reach: the workspace, and what its owner adds to it."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Identity = tuple[int, int]  # device, inode


@dataclass(frozen=True, slots=True)
class Root:
    """A folder. `writable`: tools and commands may change what is in it."""

    path: Path
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Territory:
    """Where a walk may lead. `names`: for each root its resolved path, then what it is called, too.

    The first root is where relative paths start. `hidden`: resolved folders that are never entered.
    """

    roots: tuple[Root, ...]
    names: tuple[tuple[Path, ...], ...]
    hidden: tuple[Path, ...] = ()

    def root_of(self, path: Path) -> tuple[int, list[str]] | None:
        """Which root an absolute path is in, the deepest if several; and the way from there."""
        best: tuple[int, int, list[str]] | None = None
        for number, names in enumerate(self.names):
            for name in names:
                depth = len(name.parts)
                if path.is_relative_to(name) and (best is None or depth > best[0]):
                    best = depth, number, list(path.relative_to(name).parts)
        return best and best[1:]

    def identities(self) -> dict[Identity, Root | None]:
        """Folders that change what is allowed when one comes into them; None is hidden."""
        found: dict[Identity, Root | None] = dict.fromkeys(self.out_of_sight())
        if len(self.roots) > 1:
            for root, names in zip(self.roots, self.names, strict=True):
                with suppress(OSError):
                    found[identity(names[0].stat())] = root
        return found

    def out_of_sight(self) -> set[Identity]:
        """The hidden folders."""
        found: set[Identity] = set()
        for folder in self.hidden:
            with suppress(OSError):
                found.add(identity(folder.stat()))
        return found


def identity(found: os.stat_result) -> Identity:
    """What tells a folder from every other, whatever it is called."""
    return found.st_dev, found.st_ino
