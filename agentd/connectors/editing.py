"""Changes to mcp.json that leave everything else in it as it is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentd.connectors.specs import entries, parse, read_document
from agentd.domain.errors import NotFound, Refused
from agentd.private_files import put

BUNDLED: Mapping[str, Mapping[str, Any]] = {"system-info": {"command": "agentd-system-info"}}


def add(path: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> None:
    """Raises ConfigError for a server that could not be used, Refused for a name that is taken."""
    parse(name, dict(entry), _Anything())
    document = read_document(path)
    if name in entries(document) and not replace:
        raise Refused(
            f"there is an MCP server {name!r} already",
            hint="Take another name, or --replace it.",
        )
    if not any(entries(document) is value for value in document.values()):
        document["mcpServers"] = {}
    entries(document)[name] = dict(entry)
    _write(path, document)


def remove(path: Path, name: str) -> None:
    """Raises NotFound, ConfigError."""
    document = read_document(path)
    if name not in entries(document):
        raise NotFound("MCP server", name, hint="`agentd mcp list` shows what there is.")
    del entries(document)[name]
    _write(path, document)


class _Anything(Mapping[str, str]):
    """Every variable is set: whether it is will be seen where the daemon runs."""

    def __getitem__(self, key: str) -> str:
        return key

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str)

    def __iter__(self):  # noqa: ANN204 - nothing to go through
        return iter(())

    def __len__(self) -> int:
        return 0


def _write(path: Path, document: Mapping[str, Any]) -> None:
    put(path, f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode())
