"""show_cost: what model calls have cost."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from agentd.config import Config
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolError
from agentd.domain.moment import parse_past
from agentd.store.model_calls import Costs, ModelCallStore
from agentd.store.store import Store
from agentd.toolkit.definition import Effect, tool

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@tool(group="ops", effect=Effect.READ, toolsets=("serve",))
async def show_cost(
    store: Store,
    clock: Clock,
    config: Config,
    by: Annotated[
        Literal["task", "session", "schedule", "model", "day"], Field(description="Added up by.")
    ] = "model",
    since: Annotated[
        str | None, Field(description="From then on: ISO 8601 or a duration (12h, 7d).")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="How many at the most.")] = 50,
) -> list[Costs]:
    """Show what model calls have cost at list price, in millionths of a dollar; dearest first."""
    try:
        start = parse_past(since, clock.now()) if since else _BEGINNING
    except ValueError as error:
        raise ToolError("invalid_arguments", f"since: {error}") from error
    calls = ModelCallStore(store)
    return list(await calls.costs(by, since=start, zone=config.budget.timezone, limit=limit))
