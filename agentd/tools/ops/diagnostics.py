"""diagnostics: how well the daemons of this home are."""

from agentd.domain.health import Diagnostics, HealthReader
from agentd.toolkit.definition import Effect, tool


@tool(group="ops", effect=Effect.READ, slash=r"/diagnostics", toolsets=("worker", "chat"))
def diagnostics(health: HealthReader) -> Diagnostics:
    """Show the health of every daemon: watchdog checks, circuit breakers, memory, uptime."""
    return health.diagnose()
