"""A name server in the hand of an attacker: its answers change from one question to the next."""

import socket
from collections.abc import Callable
from itertools import count
from typing import Any

PUBLIC = "93.184.215.14"
_INNER = ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "64:ff9b::7f00:1", "169.254.169.254")

# The answers to the first question, the second and so on; the last one is repeated.
ANSWERS: dict[str, list[list[str]]] = {
    "turns.evil.test": [[PUBLIC], [_INNER[0]]] * 4,
    **{f"later-{n}.evil.test": [[PUBLIC], [inner]] for n, inner in enumerate(_INNER)},
    **{f"mixed-{n}.evil.test": [[PUBLIC, inner]] for n, inner in enumerate(_INNER)},
    **{f"mixed-too-{n}.evil.test": [[inner, PUBLIC]] for n, inner in enumerate(_INNER)},
}


def lying(honest: Callable[..., Any]) -> Callable[..., Any]:
    """Instead of the system's `getaddrinfo`, which answers for all other names."""
    asked = {name: count() for name in ANSWERS}

    def getaddrinfo(host: Any, port: Any, *options: Any, **more: Any) -> Any:
        if host not in ANSWERS:
            return honest(host, port, *options, **more)
        answers = ANSWERS[host]
        addresses = answers[min(next(asked[host]), len(answers) - 1)]
        return [_record(address, int(port)) for address in addresses]

    return getaddrinfo


def _record(address: str, port: int) -> Any:
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
