"""The system calls that no confined command needs, as a filter of the kernel's (seccomp BPF).

Namespaces and dropped capabilities stop most of it already; the filter keeps a command away from
the parts of the kernel in which the next hole is most likely found. Numbers: the kernel's
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# name: (x86_64, aarch64); None: there is no such call.
_REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "move_pages": (279, 239),
    "vmsplice": (278, 75),
}
# name: (x86_64, aarch64), which argument is the mode, which one the flags that make it count.
# A program of the daemon's user with that bit would lend its rights to whoever else can start it.
_MODES: Sequence[tuple[str, tuple[int | None, int | None], int, int | None]] = (
    ("chmod", (90, None), 1, None),
    ("fchmod", (91, 52), 1, None),
    ("fchmodat", (268, 53), 2, None),
    ("fchmodat2", (452, 452), 2, None),
    ("creat", (85, None), 1, None),
    ("mknod", (133, None), 1, None),
    ("mknodat", (259, 33), 2, None),
    ("open", (2, None), 2, 1),
    ("openat", (257, 56), 3, 2),
)
_OPENAT2 = 437  # its flags lie in memory
_SET_USER_ID, _CREATING = 0o4000, 0x400040  # O_CREAT, O_TMPFILE
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*: user, process, network, mount, IPC, name, cgroup, time
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into somebody's terminal
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # as Docker allows them
_SOCKETS = (1, 2, 10, 16)  # Unix, IPv4, IPv6, netlink; not e.g. vsock, which knows no namespace

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # where in struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_X32 = 0x40000000  # a second way to call on x86_64, which nobody uses


@dataclass(frozen=True, slots=True)
class _Machine:
    """`column`: of the table. `audit`: AUDIT_ARCH_*. The calls whose arguments are looked at."""

    column: int
    audit: int
    clone: int
    clone3: int
    ioctl: int
    personality: int
    socket: int


_MACHINES = {
    "x86_64": _Machine(0, 0xC000003E, 56, 435, 16, 135, 41),
    "aarch64": _Machine(1, 0xC00000B7, 220, 435, 29, 92, 198),
}


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """The filter as an array of struct sock_filter; None for a machine that we do not know."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    numbers = [number for each in _REFUSED.values() if (number := each[known.column]) is not None]
    eperm = _ERRNO | errno.EPERM
    program = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, known.audit, then=1),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if known.column == 0:
        program += [_op(_AT_LEAST, _X32, otherwise=1), _op(_RETURN, _KILL)]
    for number in numbers:
        program += [_op(_EQUAL, number, otherwise=1), _op(_RETURN, eperm)]
    # Its flags lie in memory, where a filter can not look; programs then use clone.
    program += [_op(_EQUAL, known.clone3, otherwise=1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    program += [_op(_EQUAL, _OPENAT2, otherwise=1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    program += _no_set_user_id(known.column, eperm)
    program += _on(known.clone, _FIRST, [_op(_ANY_BIT, _NEW_NAMESPACES, otherwise=1)], eperm)
    for request in _TERMINAL_INPUT:
        program += _on(known.ioctl, _SECOND, [_op(_EQUAL, request, otherwise=1)], eperm)
    program += _on(known.personality, _FIRST, _none_of(_PERSONALITIES), eperm)
    program += _on(known.socket, _FIRST, _none_of(_SOCKETS), _ERRNO | errno.EAFNOSUPPORT)
    return b"".join([*program, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise`: how many to jump over."""
    return struct.pack("=HBBI", code, then, otherwise, value)


def _no_set_user_id(column: int, verdict: int) -> list[bytes]:
    program: list[bytes] = []
    for _, numbers, mode, flags in _MODES:
        if (number := numbers[column]) is None:
            continue
        test = [_op(_ANY_BIT, _SET_USER_ID, otherwise=1)]
        if flags is not None:
            load = _op(_LOAD, _FIRST + 8 * mode)
            test = [_op(_ANY_BIT, _CREATING, otherwise=3), load, *test]
        program += _on(number, _FIRST + 8 * (mode if flags is None else flags), test, verdict)
    return program


def _on(call: int, argument: int, test: Sequence[bytes], verdict: int) -> list[bytes]:
    """`verdict` when the call's argument passes the test, which jumps over it when not."""
    body = [_op(_LOAD, argument), *test, _op(_RETURN, verdict), _op(_LOAD, _NUMBER)]
    return [_op(_EQUAL, call, otherwise=len(body)), *body]


def _none_of(values: Sequence[int]) -> list[bytes]:
    """A test that passes for every other value."""
    left = len(values)
    return [_op(_EQUAL, each, then=left - place) for place, each in enumerate(values)]
