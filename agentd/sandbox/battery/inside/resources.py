"""Attacks on what the machine has: memory, processes, disk, descriptors."""

import mmap
import os
import resource
import signal
import time
from typing import Any

Targets = dict[str, Any]
_MB = 1 << 20


def fork_bomb(targets: Targets) -> str | None:
    children: list[int] = []
    try:
        for _ in range(targets["processes"]):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
        time.sleep(1)  # a watch may need that long
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"made {len(children)} processes"


def memory_bomb(targets: Targets) -> str | None:
    taken = [mmap.mmap(-1, 64 * _MB, mmap.MAP_PRIVATE) for _ in range(targets["memory_mb"] // 64)]
    return f"took {64 * len(taken)} MB"


def large_file(targets: Targets) -> str | None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("large", "wb") as file:
        file.truncate(targets["file_mb"] * _MB)  # a hole: the disk is spared
    os.unlink("large")
    return f"made a file of {targets['file_mb']} MB"


def fill_tmp(targets: Targets) -> str | None:
    path = f"/tmp/{targets['token']}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for at in range(targets["tmp_mb"] // 16):
            os.posix_fallocate(fd, at * 16 * _MB, 16 * _MB)
    finally:
        os.unlink(path)
        os.close(fd)
    return f"put {targets['tmp_mb']} MB into /tmp"


def descriptors(targets: Targets) -> str | None:
    opened: list[int] = []
    try:
        while len(opened) < targets["open_files"]:
            opened.append(os.dup(0))
    finally:
        for each in opened:
            os.close(each)
    return f"opened {len(opened)} files"


def raise_limits(targets: Targets) -> str | None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    except ValueError:  # python's way to say EPERM
        return None
    return "raised its own limits"


def flood(targets: Targets) -> str | None:
    for _ in range(40):
        os.write(1, b"x" * _MB)
    return None  # the length of the output tells
