"""Attacks on the network and on sockets."""

import errno
import os
import socket
from typing import Any

Targets = dict[str, Any]
_STOPPED = (errno.ENETUNREACH, errno.EPERM, errno.EACCES, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_NOT_THERE = (*_STOPPED, errno.ENODEV, errno.EINVAL, errno.EOPNOTSUPP)


def _tcp(address: str, port: int) -> str | None:
    """Whatever is no refusal of the own kernel means that a packet has left."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.settimeout(2)
        try:
            tried.connect((address, port))
        except TimeoutError:
            return f"a packet left for {address}"
        except OSError as error:
            if error.errno in _STOPPED:
                return None
            return f"a packet left for {address}: {error.strerror}"
        tried.sendall(b"x")
        return f"connected to {address}:{port}"


def tcp_loopback(targets: Targets) -> str | None:
    with socket.create_connection(("127.0.0.1", targets["tcp_port"]), timeout=2) as made:
        made.sendall(b"x")
    return "connected to a server on this machine"


def tcp_private(targets: Targets) -> str | None:
    return _tcp("10.0.0.1", 80) or _tcp("192.168.1.1", 80) or _tcp("fd00::1", 80)


def tcp_metadata(targets: Targets) -> str | None:
    return _tcp("169.254.169.254", 80)


def tcp_public(targets: Targets) -> str | None:
    return _tcp("1.1.1.1", 443) or _tcp("2606:4700:4700::1111", 443)


def udp(targets: Targets) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", targets["udp_port"]))  # the receiver tells
        sender.sendto(b"x", ("9.9.9.9", 53))
    return "a datagram left"


def names(targets: Targets) -> str | None:
    found = socket.getaddrinfo("example.com", 443)
    return f"a name server answered: {found[0][4][0]}"


def abstract_socket(targets: Targets) -> str | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.settimeout(2)
        made.connect("\0" + targets["abstract"])
        made.sendall(b"x")
    return "connected to an abstract socket"


def path_socket(targets: Targets) -> str | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.settimeout(2)
        os.chdir(targets["folder"])  # its whole path may be too long for an address
        made.connect("socket")
        made.sendall(b"x")
    return "connected to a socket in the home"


def known_sockets(targets: Targets) -> str | None:
    for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/systemd/private", "/run/dbus"):
        if os.path.exists(path):
            return f"sees {path}"
    return None


def interfaces(targets: Targets) -> str | None:
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"sees {', '.join(found)}" if found else None


def raw_socket(targets: Targets) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return "opened a raw socket"


def packet_socket(targets: Targets) -> str | None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)):
        return "opened a packet socket"


def vsock(targets: Targets) -> str | None:
    """To the host of a virtual machine: no namespace of its own keeps it inside."""
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as tried:
        tried.settimeout(2)
        try:
            tried.connect((2, 1))
        except OSError as error:
            return None if error.errno in _NOT_THERE else f"reached the host: {error.strerror}"
        return "connected to the host"
