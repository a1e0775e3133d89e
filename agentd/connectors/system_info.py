"""The bundled MCP server `system-info`: the machine, its disks, its network.

Over stdio nothing but the protocol may be written to standard output; the `mcp` package turns
prints away from it, and nothing here prints.
"""

import getpass
import os
import platform
import shutil
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from agentd.connectors.interfaces import Interface, interfaces

_ABOUT = "Facts about the machine that agentd runs on."
_NO_DISKS = frozenset(
    {"autofs", "cgroup", "cgroup2", "devpts", "devtmpfs", "mqueue", "overlay", "proc", "squashfs"}
    | {"sysfs", "tmpfs", "nsfs", "fuse.portal", "efivarfs", "binfmt_misc", "ramfs", "rootfs"}
)


@dataclass(frozen=True)  # without slots: the package takes those for defaults
class SystemInfo:
    """`memory_*`: None where the machine does not say."""

    hostname: str
    user: str
    os: str
    kernel: str
    architecture: str
    cpu: str
    cpu_count: int
    load_1m: float | None
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    uptime_s: float | None
    runtime: str
    pid: int


@dataclass(frozen=True)  # without slots: the package takes those for defaults
class Disk:
    path: str
    device: str
    type: str
    total_bytes: int
    used_bytes: int
    free_bytes: int
    used_percent: float


@dataclass(frozen=True)  # without slots: the package takes those for defaults
class Disks:
    disks: list[Disk]


@dataclass(frozen=True)  # without slots: the package takes those for defaults
class Network:
    hostname: str
    interfaces: list[Interface]


def system_info() -> SystemInfo:
    """Operating system, CPU, memory, uptime and runtime of this machine."""
    memory = _memory()
    return SystemInfo(
        hostname=socket.gethostname(),
        user=_user(),
        os=_os_name(),
        kernel=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpu=_cpu(),
        cpu_count=os.cpu_count() or 1,
        load_1m=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        memory_total_bytes=memory.get("MemTotal"),
        memory_available_bytes=memory.get("MemAvailable"),
        uptime_s=_uptime_s(),
        runtime=f"Python {platform.python_version()} ({sys.executable})",
        pid=os.getpid(),
    )


def disk_info() -> Disks:
    """Total, used and free space of each fixed disk."""
    found: dict[str, Disk] = {}
    for device, path, kind in _mounts():
        if kind in _NO_DISKS or device in found:
            continue
        try:
            usage = shutil.disk_usage(path)
        except OSError:
            continue
        if usage.total:
            percent = round(100 * usage.used / usage.total, 1)
            found[device] = Disk(path, device, kind, *usage, percent)
    if not found:  # a container whose root is an overlay
        usage = shutil.disk_usage("/")
        percent = round(100 * usage.used / usage.total, 1) if usage.total else 0.0
        found["/"] = Disk("/", "/", "unknown", *usage, percent)
    return Disks(list(found.values()))


def network_info() -> Network:
    """The network interfaces of this machine, with their addresses."""
    return Network(socket.gethostname(), interfaces())


def main() -> None:
    """Serve over stdio until the client has gone."""
    from mcp.server import MCPServer  # noqa: PLC0415 - the functions alone need none of it
    from mcp_types import ToolAnnotations  # noqa: PLC0415 - same

    server = MCPServer("system-info", instructions=_ABOUT, log_level="ERROR")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for function in (system_info, disk_info, network_info):
        server.tool(annotations=reads)(function)
    server.run("stdio")


def _memory() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    split = [line.split() for line in lines]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in split if len(words) > 1}


def _uptime_s() -> float | None:
    try:
        return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except OSError:
        return time.clock_gettime(time.CLOCK_MONOTONIC) if sys.platform == "darwin" else None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform(terse=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _mounts() -> list[tuple[str, str, str]]:
    """Device, path and type of each mounted file system."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return [("/", "/", "unknown")]
    split = [line.split() for line in lines]
    return [(words[0], _unescaped(words[1]), words[2]) for words in split if len(words) > 2]


def _unescaped(path: str) -> str:
    r"""Spaces stand as \040 there."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


if __name__ == "__main__":
    main()
