"""Attacks on files."""

import glob
import os
import stat
from typing import Any

Targets = dict[str, Any]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return f"read {path}: {file.read(200)}"


def _first(paths: list[str]) -> str | None:
    for path in paths:
        try:
            return _read(path)
        except OSError:
            continue
    return None


def read_user_home(targets: Targets) -> str | None:
    return _read(targets["user_file"])


def read_agentd_home(targets: Targets) -> str | None:
    return _first([targets["secret_file"], *targets["home_files"]])


def read_shadow(targets: Targets) -> str | None:
    return _first(["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key"])


def list_outside(targets: Targets) -> str | None:
    names: list[str] = os.listdir(str(targets["folder"]))
    return f"listed {targets['folder']}: {', '.join(names)}"


def write_outside(targets: Targets) -> str | None:
    with open(targets["written"], "w", encoding="utf-8") as file:
        file.write("x")
    return None  # the folder tells


def write_system(targets: Targets) -> str | None:
    for folder in ("/usr", "/usr/bin", "/etc", "/lib", "/"):
        path = f"{folder}/{targets['token']}"
        try:
            with open(path, "w", encoding="utf-8"):
                pass
        except OSError:
            continue
        os.unlink(path)
        return f"wrote to {folder}"
    return None


def write_through_symlink(targets: Targets) -> str | None:
    os.symlink(targets["folder"], "link")
    with open("link/written", "w", encoding="utf-8") as file:
        file.write("x")
    return None


def link_outside(targets: Targets) -> str | None:
    os.link(targets["secret_file"], "hard")
    return _read("hard")


def climb(targets: Targets) -> str | None:
    path = "../" * 40 + targets["secret_file"].lstrip("/")
    return _read(path)


def proc_root(targets: Targets) -> str | None:
    roots = [*glob.glob("/proc/[0-9]*/root"), *glob.glob("/proc/[0-9]*/cwd"), "/proc/self/root"]
    return _first([f"{root}{targets['secret_file']}" for root in roots])


def proc_descriptors(targets: Targets) -> str | None:
    for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/map_files/*"):
        try:
            target = os.readlink(path)
        except OSError:
            continue
        if targets["token"] in target and "link" not in target:
            return _read(path)
    return None


def kernel_switches(targets: Targets) -> str | None:
    """sysctl, sysrq-trigger, core_pattern: some heed the user's number, not the capabilities."""
    for name in os.listdir("/proc"):
        if name.isdigit() or name in ("self", "thread-self"):
            continue
        for folder, _, files in [("/proc", [], [name]), *os.walk(f"/proc/{name}")]:
            for each in files:
                path = os.path.join(folder, each)
                try:
                    if os.lstat(path).st_mode & stat.S_IWOTH:
                        continue  # meant for everybody, such as /proc/pressure
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # a write would be felt
                except OSError:
                    continue
                return f"opened {path} for writing"
    return None


def sysfs(targets: Targets) -> str | None:
    for path in ("/sys/kernel", "/sys/class", "/sys/fs/cgroup", "/sys/firmware"):
        if os.path.exists(path):
            return f"sees {path}"
    return None


def cgroup(targets: Targets) -> str | None:
    for path in glob.glob("/sys/fs/cgroup/**/release_agent", recursive=True):
        os.close(os.open(path, os.O_WRONLY))
        return f"opened {path} for writing"
    return None


def devices(targets: Targets) -> str | None:
    for name in os.listdir("/dev"):
        path = os.path.join("/dev", name)
        found = os.lstat(path)
        known = ("null", "zero", "full", "random", "urandom", "tty", "console")
        if stat.S_ISBLK(found.st_mode) or (stat.S_ISCHR(found.st_mode) and name not in known):
            return f"sees {path}"
    return None


def raw_memory(targets: Targets) -> str | None:
    for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kcore"):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        return f"opened {path}"
    return None


def make_device(targets: Targets) -> str | None:
    for mode, number in ((stat.S_IFBLK, os.makedev(8, 0)), (stat.S_IFCHR, os.makedev(1, 1))):
        path = f"device-{number}"
        try:
            os.mknod(path, mode | 0o600, number)
        except OSError:
            continue
        os.unlink(path)
        return "made a device"
    return None


def shared_memory_file(targets: Targets) -> str | None:
    return _read(targets["shm_file"])
