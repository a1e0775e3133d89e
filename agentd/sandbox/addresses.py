"""Which addresses are public: where a stranger's name or link may lead us, and where not."""

import ipaddress
import socket
from collections.abc import Iterator

from agentd.domain.hosts import Address

_V4 = ipaddress.IPv4Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# `is_global` of the standard library changed between Python versions (3.11.10, 3.12.4) and knows
# neither the metadata servers nor translated addresses; what must never be reached stands here.
_NOT_PUBLIC = {
    "of this network": ["0.0.0.0/8"],
    "private": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"],
    "loopback": ["127.0.0.0/8", "::1/128"],
    "link-local": ["169.254.0.0/16", "fe80::/10"],
    "of a provider's internal network": ["100.64.0.0/10"],
    "multicast": ["224.0.0.0/4", "ff00::/8"],
    "unspecified": ["::/128"],
    "for documentation": [
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:db8::/32",
        "3fff::/20",
    ],
    "reserved": [
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "64:ff9b:1::/48",
        "100::/32",
        "2001::/23",
        "5f00::/16",
    ],
    # Public by its number, but a cloud's own: it answers whoever asks from inside.
    "a metadata server": ["168.63.129.16/32"],
}
_WHY: list[tuple[_Network, str]] = [
    (ipaddress.ip_network(each), why) for why, networks in _NOT_PUBLIC.items() for each in networks
]
_V4_COMPATIBLE = ipaddress.ip_network("::/96")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_6TO4 = ipaddress.ip_network("2002::/16")
_UNICAST = ipaddress.ip_network("2000::/3")
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214: the third quarter of the address


def not_public(address: Address) -> str | None:
    """Why the address is none that anybody may connect to, in words; None when it is public.

    An IPv6 address that carries an IPv4 address is judged by both.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return "link-local"
        if address.ipv4_mapped is not None:  # the same socket as the IPv4 address itself
            return not_public(address.ipv4_mapped)
        for inner in _embedded(address):
            if why := not_public(inner):
                return f"{inner} in it is {why}"
        if address not in _UNICAST and address not in _NAT64:
            return _why(address) or "reserved"
    return _why(address)


def is_own(address: Address) -> bool:
    """Whether this machine itself has the address. Nothing is sent."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False  # there is no way to it at all


def _why(address: Address) -> str | None:
    return next((why for network, why in _WHY if address in network), None)


def _embedded(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    number = int(address)
    if address in _NAT64 or (address in _V4_COMPATIBLE and number > 1):
        yield _V4(number & 0xFFFFFFFF)
    if address in _6TO4:
        yield _V4((number >> 80) & 0xFFFFFFFF)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield _V4(number & 0xFFFFFFFF)
