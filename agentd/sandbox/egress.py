"""Where tools and commands may connect to: public addresses, and what the owner allows.

Only the resolved address counts, whatever the host looked like, and the connection goes to the
address that was checked: a name is never resolved a second time.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import ToolError
from agentd.domain.hosts import Address, HostPort, HostRule, normal_host
from agentd.sandbox.addresses import is_own, not_public

_RESOLVE_S = 5.0
_CONNECT_S = 4.0  # for one address, when there are others
_ADDRESSES_MOST = 8
_LOOKUPS_MOST = 16  # a thread each; one that hangs must not take those of all other work

Resolver = Callable[[str, int], Sequence[str]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rules:
    """Host names, `*.example.org` for all below one, addresses and networks.

    `private`: `host:port` that may be private. `allow`: if there are any, nothing else is reached
    but those of `private`. `deny` wins.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    private: Sequence[str] = ()


def system_addresses(host: str, port: int) -> list[str]:
    """What the system's resolver says, once each. Blocks."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Egress(Capability):
    """The policy for every connection to the outside. `resolve`: blocks, runs in a thread."""

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_addresses,
        *,
        resolve_s: float = _RESOLVE_S,
    ) -> None:
        self._allow = [HostRule.parse(each) for each in rules.allow]
        self._deny = [HostRule.parse(each) for each in rules.deny]
        self._private = frozenset(HostPort.parse(each) for each in rules.private)
        self._resolve = resolve
        self._resolve_s = resolve_s
        self._lookups = anyio.CapacityLimiter(_LOOKUPS_MOST)

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host` that may be connected to, and no other may. Raises ToolError.

        All must be good: an honest name that also points inside is a mistake of its owner, and
        taking only the good ones would make the answer depend on the order of the records.
        """
        try:
            name = normal_host(host)
        except ValueError as error:
            raise ToolError("invalid_url", f"{host!r} is no name of a host") from error
        if any(rule.names(name) for rule in self._deny):
            raise _refused(f"{name} is on the list of hosts that are not reached")
        found = await self._look_up(name, port)
        for address in found:
            if any(rule.holds(address) for rule in self._deny):
                raise _refused(f"{name} is at {address}, which is on the list of what is denied")
        if HostPort(name, port) in self._private:
            return [str(each) for each in found]
        self._check_allowed(name, found)
        for address in found:
            why = not_public(address) or ("this machine itself" if is_own(address) else None)
            if why is not None:
                raise _refused(f"{name} is at {address}, which is not public ({why})")
        return [str(each) for each in found]

    async def connect(self, host: str, port: int, to: Callable[[str], Awaitable[T]]) -> T:
        """What `to` makes of the first of the checked addresses that answers. Raises ToolError.

        `to`: connects to an address; OSError says that it could not.
        """
        found = await self.addresses(host, port)
        problems: list[str] = []
        for address in found:
            with anyio.move_on_after(None if address == found[-1] else _CONNECT_S):
                try:
                    return await to(address)
                except OSError as error:
                    problems.append(f"{address}: {_plainly(error)}")
                    continue
            problems.append(f"{address}: no answer in {_CONNECT_S} s")
        raise ToolError(
            "connection_failed", f"{host}:{port} can not be reached ({'; '.join(problems)})"
        )

    def _check_allowed(self, name: str, found: Sequence[Address]) -> None:
        if not self._allow or any(rule.names(name) for rule in self._allow):
            return
        if not all(any(rule.holds(each) for rule in self._allow) for each in found):
            raise _refused(f"{name} is not on the list of hosts that may be reached")

    async def _look_up(self, name: str, port: int) -> Sequence[Address]:
        try:
            with anyio.fail_after(self._resolve_s):
                texts = await anyio.to_thread.run_sync(
                    self._resolve, name, port, abandon_on_cancel=True, limiter=self._lookups
                )
        except TimeoutError as error:
            raise ToolError(
                "dns_error", f"{name}: no answer from DNS in {self._resolve_s:g} s"
            ) from error
        except (OSError, UnicodeError) as error:
            raise ToolError("dns_error", f"{name} is not known: {_plainly(error)}") from error
        if not texts:
            raise ToolError("dns_error", f"{name} has no address")
        return [ipaddress.ip_address(each) for each in texts[:_ADDRESSES_MOST]]


def _plainly(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return _plainly(error.__cause__) if isinstance(error.__cause__, OSError) else str(error)


def _refused(why: str) -> ToolError:
    return ToolError(
        "address_refused",
        why,
        next_action_hint="Only public addresses are reached, and what the owner allows in [egress] "
        "of agentd.toml.",
    )
