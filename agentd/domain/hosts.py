"""Names of hosts as they are compared: in small letters, in ASCII, without a trailing dot."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Self

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_LONGEST = 253  # RFC 1035, without the trailing dot

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def normal_host(text: str) -> str:
    """`text` as hosts are compared. Raises ValueError for what is no name and no address."""
    host = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    if not host.isascii():
        import idna  # noqa: PLC0415 - tables that the settings, and so every command, do not need

        host = idna.encode(host, uts46=True).decode()
    host = host.lower().removesuffix(".")
    if len(host) > _LONGEST or not _NAME.fullmatch(host):
        raise ValueError(f"{text!r} is no name of a host")
    return host


@dataclass(frozen=True, slots=True)
class HostRule:
    """A host, all below one (`*.example.org`), or a network (an address is a network of one)."""

    name: str = ""
    below: str = ""
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError, which says what is expected."""
        try:
            return cls(network=ipaddress.ip_network(text.strip("[]"), strict=False))
        except ValueError:
            pass
        try:
            if text.startswith("*."):
                return cls(below=f".{normal_host(text[2:])}")
            return cls(name=normal_host(text))
        except ValueError as error:
            raise ValueError(
                f"{text!r} must be a host, *.HOST for all below it, an address or a network"
            ) from error

    def names(self, host: str) -> bool:
        """Whether it is about that normal host by its name."""
        return host == self.name or (bool(self.below) and host.endswith(self.below))

    def holds(self, address: Address) -> bool:
        """Whether it is about that address."""
        return self.network is not None and address in self.network


@dataclass(frozen=True, slots=True)
class HostPort:
    """One port of one host."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError, which says what is expected."""
        host, _, port = text.rpartition(":")
        expected = f"{text!r} must be HOST:PORT, e.g. nas.local:443"
        if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ValueError(expected)
        try:
            return cls(normal_host(host), int(port))
        except ValueError as error:
            raise ValueError(expected) from error
