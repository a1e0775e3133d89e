"""Attacks on other processes."""

import ctypes
import glob
import os
import signal
import sys
import time
from typing import Any

Targets = dict[str, Any]


def signals(targets: Targets) -> str | None:
    os.kill(targets["victim"], 0)
    os.kill(targets["victim"], signal.SIGKILL)
    return None  # the victim tells


def list_processes(targets: Targets) -> str | None:
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if targets["victim_name"].encode() in words:
            return f"sees the victim at {path}"
    return None


def trace(targets: Targets) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, targets["victim"], None, None):  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.ptrace(17, targets["victim"], None, None)
    return "traced the victim"


def memory_of_another(targets: Targets) -> str | None:
    with open(f"/proc/{targets['victim']}/mem", "r+b"):
        return "opened the memory of the victim"


def environment_of_another(targets: Targets) -> str | None:
    found = b""
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                found += file.read()
        except OSError:
            continue
    return "saw the canary" if targets["variable"].encode() in found else None


def stay_behind(targets: Targets) -> str | None:
    """Two forks and a session of its own."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork() == 0:
            for each in (0, 1, 2):
                os.close(each)
            line = "import time; time.sleep(30)"
            os.execv(sys.executable, [sys.executable, "-ISc", line, targets["left_name"]])
        os._exit(0)
    os.wait()
    time.sleep(0.05)
    return None  # the list of processes tells


def terminal(targets: Targets) -> str | None:
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return "has a terminal to type into"


def spin(targets: Targets) -> str | None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ends = time.monotonic() + targets["spin_s"]
    while time.monotonic() < ends:
        pass
    return "ran beyond its time"
