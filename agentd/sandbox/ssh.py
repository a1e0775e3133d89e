"""The OpenSSH client, told everything: no file, agent or default of the user is looked at.

Paths must be fit for its options (config_git.py sees to it): they stand in quotes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# ssh would fall back on the user's files and the agent for what is not said.
_STRICT = {
    "BatchMode": "yes",
    "ClearAllForwardings": "yes",
    "ConnectTimeout": "10",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "PermitLocalCommand": "no",
    "PreferredAuthentications": "publickey",
    "ServerAliveInterval": "15",
    "UpdateHostKeys": "no",
}


@dataclass(frozen=True, slots=True)
class SshAccess:
    """`key_path`: None is no key at all. `known_hosts`: new hosts are written to the first."""

    key_path: Path | None
    known_hosts: Sequence[Path]
    accept_new_hosts: bool = False


def ssh_arguments(access: SshAccess, *, host: str, port: int, address: str | None) -> list[str]:
    """`ssh` and its options. `address`: connect there, whatever the name means by then."""
    options = dict(_STRICT)
    options["StrictHostKeyChecking"] = "accept-new" if access.accept_new_hosts else "yes"
    options["UserKnownHostsFile"] = " ".join(f'"{path}"' for path in access.known_hosts)
    options["IdentityFile"] = "none" if access.key_path is None else f'"{access.key_path}"'
    if address is not None:
        options["HostName"] = address
        options["HostKeyAlias"] = host if port == 22 else f"[{host}]:{port}"
    words = ["ssh", "-F", "none", "-T"]
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    return words
