"""The process between the daemon and a server: when either ends, nothing of the server is left.

Run as `python -I -S guard.py LIFELINE COMMAND …`. LIFELINE is the reading end of a pipe whose other
end the daemon holds; the kernel closes that whatever becomes of the daemon, `kill -9` included. It
imports little, since one of these stands beside every server.
"""

import os  # and no pathlib, whose import takes as long as all others
import select
import signal
import sys
import time
from types import FrameType

_TERM_S = 1.0  # for the server's own farewell after SIGTERM
_SWEEPS_MOST = 200  # a server whose descendants fork faster than they are killed has won
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """The server's exit code, as a shell would give it."""
    lifeline, command = int(arguments[0]), arguments[1:]
    os.set_inheritable(lifeline, False)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _heard)
    # Grandchildren whose parent has ended become ours, also those in a session of their own.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        _become(command)
    _let_go_of_pipes()
    code = _wait(child, lifeline, woken)
    _sweep()
    return 1 if code is None else code


def _heard(number: int, frame: FrameType | None) -> None:
    del number, frame  # the wake-up pipe has it


def _become(command: list[str]) -> None:
    try:
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - the owner's command, no shell
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _let_go_of_pipes() -> None:
    """The server's own ends are the only ones: its end is seen at once on both sides."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)


def _wait(child: int, lifeline: int, woken: int) -> int | None:
    """Until the server has ended, or must; its exit code, if it had one."""
    deadline: float | None = None
    while True:
        code = _reap(child)
        if code is not None:
            return code
        left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
        if left_s == 0.0:
            return None
        watched = [woken] if deadline is not None else [woken, lifeline]
        ready, _, _ = select.select(watched, [], [], left_s)
        signals = os.read(woken, 64) if woken in ready else b""
        if lifeline in ready or any(number != signal.SIGCHLD for number in signals):
            deadline = deadline or time.monotonic() + _TERM_S
            _kill_group(child, signal.SIGTERM)


def _reap(child: int) -> int | None:
    """Take in whoever has ended; the exit code of `child` if it was among them."""
    found: int | None = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return found
            if pid == child:
                found = os.waitstatus_to_exitcode(status)
                found = 128 - found if found < 0 else found
                _kill_group(child, signal.SIGKILL)
    except ChildProcessError:
        return 1 if found is None else found


def _sweep() -> None:
    """Kill every descendant that is left."""
    for _ in range(_SWEEPS_MOST):
        left = _children()
        if not left:
            return
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # ours until it is waited for, so the number is its own
        os.waitpid(-1, 0)


def _children() -> list[int]:
    me = str(os.getpid())
    found: list[int] = []
    try:
        pids = [name for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - same
    except OSError:
        return found
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - same
                parent = file.read().rpartition(b")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if parent.decode() == me:
            found.append(int(pid))
    return found


def _kill_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - Linux only

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
