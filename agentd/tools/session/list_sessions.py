"""list_sessions: the conversations of this home."""

from typing import Annotated

from pydantic import Field

from agentd.domain.session import Session
from agentd.store.sessions import SessionStore
from agentd.toolkit.definition import Effect, tool


@tool(group="session", effect=Effect.READ, toolsets=("serve",))
async def list_sessions(
    sessions: SessionStore,
    limit: Annotated[int, Field(ge=1, le=200, description="How many at the most.")] = 20,
    offset: Annotated[int, Field(ge=0, description="How many to pass over first.")] = 0,
) -> list[Session]:
    """List sessions, the one with the newest event first."""
    return list(await sessions.list(limit=limit, offset=offset))
