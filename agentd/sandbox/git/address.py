"""The address of a remote: https or SSH to a plain host name, and nothing that git would obey."""

import re
from dataclasses import dataclass

from agentd.domain.errors import ToolError

_HOST = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_USER = r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
_PATH = r"[A-Za-z0-9._~%+@=,/-]+"
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_FORMS = (
    re.compile(rf"(?P<scheme>https)://{_HOST}{_PORT}/{_PATH}"),
    re.compile(rf"(?P<scheme>ssh)://{_USER}{_HOST}{_PORT}/{_PATH}"),
    # A second colon would name a program: ext::
    re.compile(rf"{_USER}{_HOST}:(?!-|//){_PATH}"),
)


@dataclass(frozen=True, slots=True)
class Address:
    """`text`: as git takes it. `ssh`: else https."""

    text: str
    host: str
    port: int
    ssh: bool


def parse_address(text: str) -> Address:
    """Raises ToolError for everything else: files, ext::, other schemes, passwords in it."""
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        ssh = parts.get("scheme") != "https"
        port = int(parts.get("port") or (22 if ssh else 443))
        if 0 < port < 65536:
            return Address(text, parts["host"].strip("[]"), port, ssh)
    raise ToolError(
        "remote_refused",
        "the remote is neither https://HOST/PATH nor ssh://USER@HOST/PATH nor USER@HOST:PATH",
        next_action_hint="Set another one: git remote set-url origin ADDRESS (no password in it).",
    )
