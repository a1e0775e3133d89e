"""Finds out who would wait for themselves."""

from collections.abc import Iterable


def find_cycle(edges: Iterable[tuple[str, str]], start: str) -> list[str] | None:
    """A way from `start` back to it, both ends included. `edges`: (who waits, for whom)."""
    waits_for: dict[str, list[str]] = {}
    for waiter, awaited in edges:
        waits_for.setdefault(waiter, []).append(awaited)
    came_from: dict[str, str] = {}
    open_ends = [start]
    while open_ends:
        here = open_ends.pop()
        for there in waits_for.get(here, ()):
            if there == start:
                way = [start, here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if there not in came_from:
                came_from[there] = here
                open_ends.append(there)
    return None
