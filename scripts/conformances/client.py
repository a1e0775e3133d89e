"""The client that the suite tests: agentd's own session and login, with nobody asked.

Run by the suite as `client.py URL`; MCP_CONFORMANCE_SCENARIO says what is looked at.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.shared.auth import AuthorizationCodeResult
from mcp_types import ElicitRequestParams, ElicitResult

from agentd.connectors.login import Person, attended, code_in
from agentd.connectors.questions import Question, answer
from agentd.connectors.session import Calling, Session, open_session
from agentd.connectors.specs import OAuthSpec, ServerSpec

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
REDIRECT = "http://127.0.0.1:8976/callback"
METADATA = "https://conformance-test.local/client-metadata.json"
KNOWN = {"add_numbers": {"a": 5, "b": 3}}
SAMPLES = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": []}


async def elicit(asked: ElicitRequestParams) -> ElicitResult:
    """A person who answers nothing in particular: what has a default keeps it."""
    found = answer(Question.of("suite", asked), "{}")
    return found if isinstance(found, ElicitResult) else ElicitResult(action="accept", content={})


def person() -> Person:
    """Who logs in wherever a page wants it, and comes back at once."""
    backs: list[str] = []

    async def send(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            backs.append((await browser.get(url)).headers["location"])

    async def wait() -> AuthorizationCodeResult:
        return code_in(backs[-1])

    return Person(REDIRECT, send, wait)


def sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Something that a tool takes."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {
        name: each.get("default", SAMPLES.get(str(each.get("type")), {}))
        for name, each in properties.items()
    }


async def use(session: Session) -> None:
    """List the tools and call them."""
    listing = await session.tools()
    asked = CONTEXT.get("toolCalls") or [
        {"name": each.name, "arguments": KNOWN.get(each.name) or sample(each.input_schema)}
        for each in listing.tools
    ]
    for each in asked:
        await session.call(each["name"], each.get("arguments") or {}, 30, None)


async def main() -> None:
    registered = OAuthSpec(
        client_id=CONTEXT.get("client_id"),
        client_secret=CONTEXT.get("client_secret"),
        client_metadata_url=METADATA,
    )
    spec = ServerSpec("suite", "http", url=sys.argv[1], oauth=registered)
    with tempfile.TemporaryDirectory() as folder:
        auth = None
        if SCENARIO.startswith("auth/"):
            auth = await attended(spec, Path(folder) / "tokens", person())
        calling = Calling(
            spec=spec,
            workdir=Path(folder),
            connect_s=20,
            close_s=1,
            auth=auth,
            ended=lambda _: None,
            changed=lambda: None,
            elicit=elicit,
        )
        async with open_session(calling) as session:
            await use(session)


if __name__ == "__main__":
    anyio.run(main)
