"""read_session: what was said and done in a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from agentd.store.events import EventStore
from agentd.store.sessions import SessionStore
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class EventView:
    """One event of the journal; `body` as it stands there."""

    seq: int
    kind: str
    at: datetime
    body: Mapping[str, Any]


@tool(group="session", effect=Effect.READ, toolsets=("serve",))
async def read_session(
    sessions: SessionStore,
    events: EventStore,
    id: Annotated[  # noqa: A002 - the name that the model reads
        str, Field(min_length=4, description="The session's id, or the start or end of it.")
    ],
    limit: Annotated[int, Field(ge=1, le=200, description="How many events, the newest.")] = 50,
) -> list[EventView]:
    """Show the newest events of a session, in order."""
    found = await events.newest(await sessions.find(id), limit)
    return [EventView(each.seq, str(each.kind), each.created_at, each.body) for each in found]
