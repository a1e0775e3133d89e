"""mcp.json: which MCP servers there are, in the shape that other clients use, too.

A mistake is said in words and costs only the server that it stands in.
"""

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from agentd.domain.errors import ConfigError
from agentd.domain.jsons import is_array, is_object

FILE_NAME = "mcp.json"
Transport = Literal["stdio", "http", "sse"]
_ROOTS = ("mcpServers", "McpServers", "servers")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}


@dataclass(frozen=True, slots=True)
class OAuthSpec:
    """What a person registered by hand; all of it may be empty."""

    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    client_metadata_url: str | None = None


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server. `allow`, `deny`: tools by name, `*` stands for any characters; `deny` wins.

    `connect_s`, `call_s`, `idle_s`: None is what the configuration says.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    enabled: bool = True
    connect_s: float | None = None
    call_s: float | None = None
    idle_s: float | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    oauth: OAuthSpec = OAuthSpec()

    @property
    def where(self) -> str:
        """The command line or the address; without what may be secret."""
        if self.transport == "stdio":
            return " ".join([self.command, *self.args])
        return re.sub(r"//[^/@]*@", "//", self.url).partition("?")[0]


@dataclass(frozen=True, slots=True)
class Servers:
    """`problems`: what is wrong; the servers that it concerns are left out."""

    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[ConfigError, ...] = ()


class _OAuth(BaseModel):
    model_config = ConfigDict(extra="forbid")

    client_id: str | None = Field(None, validation_alias=AliasChoices("client_id", "clientId"))
    client_secret: str | None = Field(
        None, validation_alias=AliasChoices("client_secret", "clientSecret")
    )
    scope: str | None = None
    client_metadata_url: str | None = Field(
        None, validation_alias=AliasChoices("client_metadata_url", "clientMetadataUrl")
    )


class _Entry(BaseModel):
    """One server as it is written. Keys of other clients are passed over."""

    model_config = ConfigDict(extra="allow", strict=True)

    transport: str | None = Field(None, validation_alias=AliasChoices("transport", "type"))
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str | int | float | bool] = Field(
        default_factory=dict[str, str | int | float | bool]
    )
    cwd: str | None = None
    url: str | None = Field(None, validation_alias=AliasChoices("url", "serverUrl", "httpUrl"))
    headers: dict[str, str] = Field(default_factory=dict)
    enabled: bool = True
    disabled: bool = False
    connect_seconds: float | None = Field(None, gt=0, le=86_400)
    call_seconds: float | None = Field(None, gt=0, le=86_400)
    idle_seconds: float | None = Field(None, gt=0, le=30 * 86_400)
    allow: list[str] = Field(default_factory=list)
    deny: list[str] = Field(default_factory=list)
    oauth: _OAuth = Field(default_factory=lambda: _OAuth.model_validate({}))


_KNOWN = (*_Entry.model_fields, "type", "serverUrl", "httpUrl")


def load_servers(path: Path, environment: Mapping[str, str] = os.environ) -> Servers:
    """The servers of the file `path`; none where there is no such file. Never raises."""
    try:
        document = read_document(path)
    except ConfigError as error:
        return Servers(problems=(error,))
    specs: list[ServerSpec] = []
    problems: list[ConfigError] = []
    for name, written in entries(document).items():
        try:
            specs.append(parse(name, written, environment))
        except ConfigError as error:
            problems.append(ConfigError(f"{path}: {error.message}", hint=error.hint))
    return Servers(tuple(specs), tuple(problems))


def read_document(path: Path) -> dict[str, Any]:
    """The whole file, `{}` where there is none. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can not be read: {error}") from error
    try:
        document: Any = json.loads(text or "{}")
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error
    if not is_object(document) or not is_object(entries(document)):
        raise ConfigError(
            f"{path} holds no servers",
            hint='Write {"mcpServers": {"NAME": {"command": "…", "args": []}}}.',
        )
    return document


def entries(document: Mapping[str, Any]) -> dict[str, Any]:
    """The servers as they are written, by name."""
    root = next((key for key in _ROOTS if key in document), None)
    found: dict[str, Any] = document[root] if root else {}
    return found


def parse(name: str, written: object, environment: Mapping[str, str]) -> ServerSpec:
    """Raises ConfigError that names everything that is wrong with the server."""
    wrong: list[str] = []
    if not name.strip():
        wrong.append("a server has no name")
    if not is_object(written):
        raise _wrong(name, ["it must be an object with command or url"])
    try:
        entry = _Entry.model_validate(written)
    except ValidationError as error:
        raise _wrong(name, wrong + [_explain(each) for each in error.errors()]) from error
    for key in entry.model_extra or {}:
        close = difflib.get_close_matches(key, _KNOWN, n=1, cutoff=0.8)
        if close:
            wrong.append(f"{key} is no key; is {close[0]} meant?")
    transport = _transport(entry, wrong)
    expand = _Expansion(environment, wrong)
    env = {key: str(value) for key, value in entry.env.items()}
    spec = ServerSpec(
        name=name,
        transport=transport,
        command=expand.text("command", entry.command or ""),
        args=tuple(expand.text("args", each) for each in entry.args),
        env={key: expand.text(f"env.{key}", value) for key, value in env.items()},
        cwd=expand.text("cwd", entry.cwd) if entry.cwd else None,
        url=expand.text("url", entry.url or ""),
        headers={k: expand.text(f"headers.{k}", v) for k, v in entry.headers.items()},
        enabled=entry.enabled and not entry.disabled,
        connect_s=entry.connect_seconds,
        call_s=entry.call_seconds,
        idle_s=entry.idle_seconds,
        allow=tuple(entry.allow),
        deny=tuple(entry.deny),
        oauth=OAuthSpec(
            entry.oauth.client_id,
            expand.text("oauth.client_secret", entry.oauth.client_secret or "") or None,
            entry.oauth.scope,
            entry.oauth.client_metadata_url,
        ),
    )
    if spec.url and not re.match(r"https?://[^/]", spec.url):
        wrong.append("url must begin with http:// or https://")
    if any("\n" in value or "\r" in value for value in spec.headers.values()):
        wrong.append("a header holds a line break")
    # A server that is switched off may name variables that are not set here.
    if wrong and spec.enabled:
        raise _wrong(name, wrong)
    return spec


def _transport(entry: _Entry, wrong: list[str]) -> Transport:
    if bool(entry.command) == bool(entry.url):
        both = "both command and url" if entry.command else "neither command nor url"
        wrong.append(f"it has {both}; a process has command, a server on the network has url")
    implied: Transport = "stdio" if entry.command else "http"
    if entry.transport is None:
        return implied
    said = _TRANSPORTS.get(entry.transport.lower())
    if said is None:
        wrong.append(f"transport {entry.transport!r} is none of stdio, http, sse")
    elif (said == "stdio") != (implied == "stdio"):
        wrong.append(
            f"transport {entry.transport} does not go with {'command' if entry.command else 'url'}"
        )
    return said or implied


@dataclass(frozen=True, slots=True)
class _Expansion:
    """`${NAME}` and `${NAME:-else}` from the environment."""

    environment: Mapping[str, str]
    wrong: list[str]

    def text(self, key: str, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name, otherwise = found.group(1), found.group(2)
            if name in self.environment:
                return self.environment[name]
            if otherwise is None:
                self.wrong.append(f"{key} names ${{{name}}}, which is not set")
            return otherwise or ""

        return _VARIABLE.sub(value, text)


def _explain(problem: Any) -> str:
    way = ".".join(str(part) for part in problem["loc"] if not str(part).startswith("function"))
    got = problem["input"]
    shown = type(got).__name__ if is_object(got) or is_array(got) else json.dumps(got, default=str)
    return f"{way}: {problem['msg'].lower()}, got {shown}"


def _wrong(name: str, problems: list[str]) -> ConfigError:
    return ConfigError(
        f"MCP server {name!r}: " + "; ".join(problems),
        hint="docs/mcp.md shows what a server needs.",
    )
