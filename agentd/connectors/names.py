"""Names under which the tools of servers appear: legal for every provider, and told apart."""

import hashlib
import re
from collections.abc import Callable, Iterable

SEPARATOR = "__"
_NAME_MOST = 128  # characters; the Messages API
_PREFIX_MOST = 40


def prefixes(servers: Iterable[str]) -> dict[str, str]:
    """For each server the first part of its tools' names.

    No prefix holds `__` or ends with `_`, so the first `__` of a tool's name always ends it.
    """
    return _distinct(servers, _prefix, "-")


def exported(prefix: str, tools: Iterable[str]) -> dict[str, str]:
    """For each tool of one server its name here."""
    most = _NAME_MOST - len(prefix) - len(SEPARATOR) - 4  # room for a number
    found = _distinct(tools, lambda name: _cut(_safe(name), most), "_")
    return {tool: f"{prefix}{SEPARATOR}{name}" for tool, name in found.items()}


def split(name: str) -> tuple[str, str] | None:
    """Prefix and rest of a tool's name; None when it can not be one of a server."""
    prefix, separator, rest = name.partition(SEPARATOR)
    return (prefix, rest) if separator and prefix and rest else None


def _prefix(server: str) -> str:
    return _cut(re.sub(r"_+", "_", _safe(server)).strip("_") or "server", _PREFIX_MOST).rstrip("_")


def _safe(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _cut(name: str, most: int) -> str:
    """At most `most` characters; what is cut off is told apart by its digest."""
    if len(name) <= most:
        return name
    return f"{name[: most - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _distinct(names: Iterable[str], wish: Callable[[str], str], mark: str) -> dict[str, str]:
    """Each name as wished, with a number where somebody has that already; the order decides not."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    # Names that are legal as they are keep themselves.
    for name in sorted(set(names), key=lambda each: (wish(each) != each, each)):
        wished = found = wish(name)
        number = 2
        while found in taken:
            found, number = f"{wished}{mark}{number}", number + 1
        taken.add(found)
        given[name] = found
    return given
