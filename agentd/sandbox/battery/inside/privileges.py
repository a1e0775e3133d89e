"""Attacks on privileges: what only the administrator may do."""

import ctypes
import os
import platform
import shutil
import socket
import subprocess
from typing import Any

Targets = dict[str, Any]
_CLONE_NEWUSER, _CLONE_NEWNS = 0x10000000, 0x00020000
_LINES = ("NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
# x86_64, aarch64: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
_CALLS = {
    "bpf": (321, 280),
    "init_module": (175, 105),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
}


def _call(name: str, *arguments: Any) -> int:
    number = _CALLS[name][platform.machine() == "aarch64"]
    found = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def _libc(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _status(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs if name in _LINES}


def capabilities(targets: Targets) -> str | None:
    with open("/proc/self/status", encoding="ascii") as file:
        found = _status(file.read())
    held = [name for name in _LINES[1:] if int(found[name], 16)]
    return f"has {', '.join(held)}" if held else None


def new_privileges(targets: Targets) -> str | None:
    with open("/proc/self/status", encoding="ascii") as file:
        return None if _status(file.read())["NoNewPrivs"] == "1" else "setuid programs work"


def setuid_programs(targets: Targets) -> str | None:
    line = "cat /proc/self/status"
    for words in (
        ["su", "-c", line],
        ["sudo", "-n", "sh", "-c", line],
        ["pkexec", "sh", "-c", line],
    ):
        program = shutil.which(words[0])
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, *words[1:]], stdin=-3, capture_output=True, timeout=3, check=False
            )
        except subprocess.TimeoutExpired:
            continue
        found = _status(done.stdout.decode())
        if int(found.get("CapEff", "0"), 16):
            return f"{words[0]} gave privileges"
    return None


def user_namespace(targets: Targets) -> str | None:
    _libc("unshare", _CLONE_NEWUSER)
    return "made a user namespace"


def mount(targets: Targets) -> str | None:
    os.mkdir("mounted")
    here = os.path.abspath("mounted").encode()
    _libc("mount", b"tmpfs", here, b"tmpfs", 0, None)
    ctypes.CDLL(None).umount2(here, 2)
    return "mounted a file system"


def make_writable(targets: Targets) -> str | None:
    if not os.statvfs("/usr").f_flag & os.ST_RDONLY:
        return "/usr is not mounted read-only"
    _libc("mount", None, b"/usr", None, 0x20 | 0x1000, None)  # MS_REMOUNT | MS_BIND
    return "made /usr writable"


def change_root(targets: Targets) -> str | None:
    os.chroot(".")
    return "changed its root"


def join_namespace(targets: Targets) -> str | None:
    fd = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    _libc("setns", fd, _CLONE_NEWNS)
    return "joined a namespace"


def file_handle(targets: Targets) -> str | None:
    """By its number, whatever the path says: CAP_DAC_READ_SEARCH."""
    handle = (ctypes.c_char * 16)()
    ctypes.memmove(handle, (8).to_bytes(4, "little") + (1).to_bytes(4, "little"), 8)
    ctypes.memmove(ctypes.byref(handle, 8), (2).to_bytes(8, "little"), 8)  # inode 2: the root
    fd = os.open(".", os.O_RDONLY)
    try:
        opened = _call("open_by_handle_at", fd, handle, os.O_RDONLY)
    except OSError as error:
        return "was not refused" if error.errno == 116 else None  # ESTALE: it looked
    return f"opened the root: {os.listdir(opened)}"


def kernel_module(targets: Targets) -> str | None:
    try:
        _call("init_module", b"no module", 9, b"")
    except OSError as error:
        return "was not refused" if error.errno == 8 else None  # ENOEXEC: it looked
    return "loaded a module"


def new_kernel(targets: Targets) -> str | None:
    try:
        _call("kexec_load", 0, 1 << 20, None, 1 << 30 | 0x8000)  # wrong in every way
    except OSError as error:
        return "was not refused" if error.errno == 22 else None  # EINVAL: it looked
    return "loaded a kernel"


def kernel_program(targets: Targets) -> str | None:
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)  # BPF_MAP_TYPE_ARRAY of one
    os.close(_call("bpf", 0, attributes, 128))
    return "made a BPF map"


def performance_events(targets: Targets) -> str | None:
    attributes = (ctypes.c_uint32 * 32)(1, 128)  # software clock
    os.close(_call("perf_event_open", attributes, 0, -1, -1, 0))
    return "counts events of the kernel"


def page_faults(targets: Targets) -> str | None:
    os.close(_call("userfaultfd", 1))
    return "handles page faults"


def keyring(targets: Targets) -> str | None:
    """Keys of the session and of the user: no namespace of its own keeps them."""
    for ring in (-3, -4, -5):  # session, user, user session
        try:
            key = _call("keyctl", 10, ring, b"user", targets["key_name"].encode(), 0)
        except OSError as error:
            if error.errno in (1, 38):
                raise
            continue
        text = ctypes.create_string_buffer(200)
        _call("keyctl", 11, key, text, 200)
        return f"read a key: {text.value.decode()}"
    return None


def scheduler(targets: Targets) -> str | None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "runs before all others"


def bind_low_port(targets: Targets) -> str | None:
    with socket.socket() as made:
        made.bind(("0.0.0.0", 1))
    return "took a privileged port"
