"""How a confined command stands: read by one inside, from what the kernel says of it."""

from dataclasses import dataclass
from pathlib import Path

from agentd.sandbox.commands import Command, Commands

_TIMEOUT_S = 10.0
_SCRIPT = """
cat /proc/self/status /proc/self/limits
for each in user pid net mnt ipc uts cgroup; do readlink /proc/self/ns/$each; done
"""
_NAMESPACES = ("user", "pid", "net", "mnt", "ipc", "uts")


@dataclass(frozen=True, slots=True)
class Standing:
    """One part of the confinement. `ok`: it is in force."""

    part: str
    ok: bool
    text: str


async def standing(commands: Commands) -> list[Standing]:
    """Raises ToolError where commands can not be confined at all."""
    done = await commands.run(Command(["sh", "-c", _SCRIPT], timeout_s=_TIMEOUT_S))
    said = done.output.splitlines()
    facts = {
        name: value.strip() for name, colon, value in (x.partition(":") for x in said) if colon
    }
    shared = [name for name in _NAMESPACES if _own(name) in said]
    caps = [name for name in ("CapPrm", "CapEff", "CapBnd") if int(facts.get(name, "1"), 16)]
    return [
        Standing(
            "namespaces",
            not shared,
            f"shared with the machine: {', '.join(shared)}" if shared else ", ".join(_NAMESPACES),
        ),
        Standing("capabilities", not caps, f"has {', '.join(caps)}" if caps else "none"),
        Standing(
            "no_new_privs",
            facts.get("NoNewPrivs") == "1",
            "setuid programs gain nothing" if facts.get("NoNewPrivs") == "1" else "not set",
        ),
        Standing(
            "seccomp filter",
            facts.get("Seccomp") == "2",
            f"{facts.get('Seccomp_filters', '1')} in force"
            if facts.get("Seccomp") == "2"
            else "none",
        ),
        *_limits(said),
    ]


def _limits(said: list[str]) -> list[Standing]:
    """Those of the kernel, for each process."""
    found: list[Standing] = []
    for name in ("Max cpu time", "Max file size", "Max data size", "Max open files"):
        line = next((each for each in said if each.startswith(name)), "")
        soft = (line[len(name) :].split() or ["unknown"])[0]
        found.append(Standing(name.lower(), soft not in ("unlimited", "unknown"), soft))
    return found


def _own(namespace: str) -> str:
    try:
        return str(Path("/proc/self/ns", namespace).readlink())
    except OSError:
        return "unknown"
