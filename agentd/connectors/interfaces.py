"""The network interfaces of this machine, from what the C library and /sys say."""

import ctypes
import ctypes.util
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_UP = 0x1  # IFF_UP


@dataclass(frozen=True)  # without slots, as in system_info.py
class Interface:
    """`mac`: None where it has none, or the machine does not say."""

    name: str
    up: bool
    mac: str | None
    addresses: list[str] = field(default_factory=list[str])


class _Address(ctypes.Structure):
    """struct ifaddrs, as far as it is the same everywhere."""


_Address._fields_ = [
    ("next", ctypes.POINTER(_Address)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
]


def interfaces() -> list[Interface]:
    """By name, with their IPv4 and IPv6 addresses."""
    found: dict[str, Interface] = {}
    for name, flags, address in _entries():
        each = found.setdefault(name, Interface(name, bool(flags & _UP), _mac(name)))
        if address is not None:
            each.addresses.append(address)
    return [found[name] for name in sorted(found)]


def _entries() -> Iterator[tuple[str, int, str | None]]:
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    first = ctypes.POINTER(_Address)()
    if library.getifaddrs(ctypes.byref(first)) != 0:
        return
    try:
        entry = first
        while entry:
            its = entry.contents
            yield its.name.decode(errors="replace"), its.flags, _address(its.address)
            entry = its.next
    finally:
        library.freeifaddrs(first)


def _address(at: int | None) -> str | None:
    """The text of a struct sockaddr; None when it is of another family."""
    if not at:
        return None
    head = ctypes.string_at(at, 2)
    family = head[1] if sys.platform == "darwin" else struct.unpack("=H", head)[0]
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, ctypes.string_at(at + 4, 4))
    if family == socket.AF_INET6:
        return socket.inet_ntop(socket.AF_INET6, ctypes.string_at(at + 8, 16))
    return None


def _mac(name: str) -> str | None:
    try:
        text = Path(f"/sys/class/net/{name}/address").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return text or None
