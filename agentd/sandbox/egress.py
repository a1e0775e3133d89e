"""Where tools and commands may connect to: public addresses, and what the owner allows."""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError


@dataclass(frozen=True, slots=True)
class Rules:
    """Host names, `*.example.org` for all below one. `private`: `host:port` that may be private.

    `allow`: if there are any, nothing else is reached. `deny` wins.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    private: Sequence[str] = ()


class Egress(Capability):
    """The policy for every connection to the outside."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host` that may be connected to, and no other may. Raises ToolError."""
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        numbers = [str(each[4][0]) for each in found]
        if f"{host}:{port}" in self._rules.private:
            return numbers
        for number in numbers:
            if not ipaddress.ip_address(number).is_global:
                raise ToolError("address_refused", f"{host} is at {number}, which is not public")
        return numbers
