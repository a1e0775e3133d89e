"""What may have leaked in: variables, descriptors, memory that is shared, dumps."""

import ctypes
import os
import resource
from typing import Any

Targets = dict[str, Any]


def environment(targets: Targets) -> str | None:
    value = os.environ.get(targets["variable"])
    return f"has the variable: {value}" if value else None


def open_descriptors(targets: Targets) -> str | None:
    """Its own standard streams, and nothing that leads to a file of ours."""
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if int(name) > 2 and not target.startswith("/proc/"):
            return f"descriptor {name} is open: {target}"
    return None


def core_dump(targets: Targets) -> str | None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    return None if hard == 0 else "a crash writes a dump"


def shared_memory(targets: Targets) -> str | None:
    found = ctypes.CDLL(None, use_errno=True).shmget(targets["shm_key"], 0, 0)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "found a memory segment of ours"


def host_name(targets: Targets) -> str | None:
    return "sees the host's name" if os.uname().nodename == targets["host_name"] else None
