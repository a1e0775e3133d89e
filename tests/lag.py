"""How long the event loop is held while something goes on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

_TICK_S = 0.005


@dataclass
class Lag:
    """`share`: the longest time without a turn of the loop, as a part of the whole."""

    worst_s: float = 0.0
    took_s: float = 0.0

    @property
    def share(self) -> float:
        return self.worst_s / self.took_s


@asynccontextmanager
async def measured_lag() -> AsyncGenerator[Lag]:
    """Of the block; what holds the loop all the time has a share of nearly 1."""
    lag, started = Lag(), anyio.current_time()

    async def tick() -> None:
        while True:
            before = anyio.current_time()
            await anyio.sleep(_TICK_S)
            lag.worst_s = max(lag.worst_s, anyio.current_time() - before)

    async with anyio.create_task_group() as beside:
        beside.start_soon(tick)
        yield lag
        lag.took_s = anyio.current_time() - started
        await anyio.sleep(2 * _TICK_S)  # a turn that is late is counted, too
        beside.cancel_scope.cancel()
