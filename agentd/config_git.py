"""The settings of git, and of the commands that run outside the sandbox."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from agentd.config_sections import Section

# OpenSSH expands % and $ in the paths of its options, and quotes end at a quote.
_UNFIT = re.compile(r"[\"%$\x00-\x1f]")
_HOST = r"^[A-Za-z0-9\[:][A-Za-z0-9.:\]-]*$"
_USER = r"^[A-Za-z0-9_][A-Za-z0-9._-]*$"


def _path_for_ssh(text: str) -> str:
    if _UNFIT.search(text):
        raise ValueError('must be a path without any of " % $')
    return text


SshPath = Annotated[str, Field(min_length=1), AfterValidator(_path_for_ssh)]


class GitConfig(Section):
    name: str = Field(
        "agentd", pattern=r"^[^<>\n\x00]+$", description="Who commits, as git shows it."
    )
    email: str = Field(
        "agentd@localhost", pattern=r"^[^<>\s\x00]+$", description="The address of who commits."
    )
    ssh_key_path: SshPath | None = Field(
        None,
        description="The private key for push and pull over SSH, without a passphrase; "
        "SSH_KEY_PATH sets it, too.",
    )
    known_hosts_path: SshPath | None = Field(
        None,
        description="The known_hosts file that is asked first; empty: known_hosts in the home. "
        "The files of the user and of the machine are asked after it.",
    )
    accept_new_hosts: bool = Field(
        False,
        description="Trust the key of a host that is seen for the first time, and write it there.",
    )


class SshConfig(Section):
    """Where a host command runs."""

    host: str = Field(pattern=_HOST, description="The host.")
    port: int = Field(22, ge=1, le=65535, description="Its port.")
    user: str = Field(pattern=_USER, description="Who logs in there.")
    key_path: SshPath = Field(description="The private key, without a passphrase.")
    known_hosts_path: SshPath = Field(description="The known_hosts file that names the host.")


Words = Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]*$")], ...], Field(min_length=1)]


class HostCommandConfig(Section):
    """One command that leaves the sandbox."""

    argv: Words = Field(description="What the agent says, word by word.")
    run: Words | None = Field(None, description="What is started; without it argv.")
    ssh: SshConfig | None = Field(None, description="Where; without it on this machine.")
    timeout_seconds: float = Field(1800, gt=0, description="How long it may take at the most.")


HostCommandsConfig = tuple[HostCommandConfig, ...]
HOST_COMMANDS = (
    "A command that `exec` runs outside the sandbox, when it is exactly these words: argv = "
    '["deploy", "--staging"]; optional run = [...] (what is really started), timeout_seconds, and '
    "ssh = { host, port, user, key_path, known_hosts_path }. One table for each."
)
