"""Every attack of the battery: what it tries, and which part of the kernel is to stop it."""

from dataclasses import dataclass

MOUNTS = "mount namespace"
READ_ONLY = "read-only mounts"
NETWORK = "network namespace"
PROCESSES = "PID namespace"
CAPABILITIES = "no capabilities"
NO_NEW = "no_new_privs"
FILTER = "seccomp filter"
IPC = "IPC namespace"
LIMITS = "resource limits"
WATCH = "watch over the process tree"


@dataclass(frozen=True, slots=True)
class Attack:
    """`kind`: the file in inside/; `name`: the function there. `by`: what is to stop it."""

    kind: str
    name: str
    tried: str
    by: str
    timeout_s: float = 20.0


ATTACKS = (
    Attack("files", "read_user_home", "read a file in the user's home", MOUNTS),
    Attack("files", "read_agentd_home", "read agentd.toml, the database, run/", MOUNTS),
    Attack("files", "read_shadow", "read /etc/shadow, /etc/sudoers, host keys", MOUNTS),
    Attack("files", "list_outside", "list a folder of the home", MOUNTS),
    Attack("files", "write_outside", "write a file outside the workspace", MOUNTS),
    Attack("files", "write_system", "write to /usr, /etc, /lib, /", READ_ONLY),
    Attack("files", "write_through_symlink", "write through a symlink that leads out", MOUNTS),
    Attack("files", "link_outside", "hard-link a file of the home", MOUNTS),
    Attack("files", "climb", "climb out with ../../..", MOUNTS),
    Attack("files", "proc_root", "go through /proc/PID/root and cwd", PROCESSES),
    Attack("files", "proc_descriptors", "go through /proc/PID/fd and map_files", PROCESSES),
    Attack(
        "files",
        "kernel_switches",
        "open sysrq-trigger, core_pattern and others in /proc",
        READ_ONLY,
    ),
    Attack("files", "sysfs", "look at /sys", MOUNTS),
    Attack("files", "cgroup", "open a control group's release_agent", MOUNTS),
    Attack("files", "devices", "look for disks and other devices in /dev", MOUNTS),
    Attack("files", "raw_memory", "open /dev/mem, /dev/kmsg, /proc/kcore", MOUNTS),
    Attack("files", "make_device", "make a device of its own (mknod)", CAPABILITIES),
    Attack("files", "shared_memory_file", "read a file in /dev/shm", MOUNTS),
    Attack("network", "tcp_loopback", "connect to a server on 127.0.0.1", NETWORK),
    Attack("network", "tcp_private", "connect to private addresses", NETWORK),
    Attack("network", "tcp_metadata", "connect to 169.254.169.254 (metadata)", NETWORK),
    Attack("network", "tcp_public", "connect to public addresses", NETWORK),
    Attack("network", "udp", "send datagrams", NETWORK),
    Attack("network", "names", "ask a name server", NETWORK),
    Attack("network", "abstract_socket", "connect to an abstract Unix socket", NETWORK),
    Attack("network", "path_socket", "connect to a Unix socket in the home", MOUNTS),
    Attack("network", "known_sockets", "find the sockets of Docker, systemd, D-Bus", MOUNTS),
    Attack("network", "interfaces", "see network interfaces", NETWORK),
    Attack("network", "raw_socket", "open a raw socket", CAPABILITIES),
    Attack("network", "packet_socket", "open a packet socket", CAPABILITIES),
    Attack("network", "vsock", "connect to the host of a virtual machine", FILTER),
    Attack("processes", "list_processes", "see a process of the user", PROCESSES),
    Attack("processes", "trace", "trace a process of the user (ptrace)", PROCESSES),
    Attack("processes", "memory_of_another", "open the memory of a process", PROCESSES),
    Attack("processes", "environment_of_another", "read environments in /proc", PROCESSES),
    Attack("processes", "stay_behind", "leave a process behind (setsid, two forks)", PROCESSES),
    Attack("processes", "terminal", "open the terminal, to type into it (TIOCSTI)", "new session"),
    Attack("processes", "spin", "run on beyond its time, deaf to TERM", "KILL", timeout_s=1.0),
    # Last of its kind: without the victim the others would prove nothing.
    Attack("processes", "signals", "kill a process of the user", PROCESSES),
    Attack("privileges", "capabilities", "have a capability", CAPABILITIES),
    Attack("privileges", "new_privileges", "be able to gain privileges", NO_NEW),
    Attack("privileges", "setuid_programs", "run su, sudo, pkexec", NO_NEW),
    Attack("privileges", "user_namespace", "make a user namespace", FILTER),
    Attack("privileges", "mount", "mount a file system", CAPABILITIES),
    Attack("privileges", "make_writable", "make /usr writable", CAPABILITIES),
    Attack("privileges", "change_root", "change its root (chroot)", CAPABILITIES),
    Attack("privileges", "join_namespace", "join a namespace (setns)", CAPABILITIES),
    Attack("privileges", "file_handle", "open a file by its number", CAPABILITIES),
    Attack("privileges", "kernel_module", "load a kernel module", CAPABILITIES),
    Attack("privileges", "new_kernel", "load another kernel (kexec)", CAPABILITIES),
    Attack("privileges", "kernel_program", "make a BPF map", FILTER),
    Attack("privileges", "performance_events", "count events of the kernel (perf)", FILTER),
    Attack("privileges", "page_faults", "handle page faults (userfaultfd)", FILTER),
    Attack("privileges", "keyring", "read a key of the kernel's keyring", FILTER),
    Attack("privileges", "scheduler", "run before all other processes", CAPABILITIES),
    Attack("privileges", "bind_low_port", "listen on a privileged port", CAPABILITIES),
    Attack("resources", "fork_bomb", "make processes without end", WATCH),
    Attack("resources", "memory_bomb", "take memory without end", LIMITS),
    Attack("resources", "large_file", "make a file larger than allowed", LIMITS),
    Attack("resources", "fill_tmp", "fill /tmp", "size of the mount"),
    Attack("resources", "descriptors", "open files without end", LIMITS),
    Attack("resources", "raise_limits", "raise its own limits", CAPABILITIES),
    Attack("resources", "flood", "print 40 MB", "cap on the output"),
    Attack("leaks", "environment", "find a variable of the daemon", "clean environment"),
    Attack("leaks", "open_descriptors", "find an open descriptor", "closed on start"),
    Attack("leaks", "core_dump", "leave a dump of its memory", LIMITS),
    Attack("leaks", "shared_memory", "find a shared memory segment", IPC),
    Attack("leaks", "host_name", "see the host's name", "UTS namespace"),
)
KINDS = tuple(dict.fromkeys(each.kind for each in ATTACKS))
