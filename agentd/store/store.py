"""`async with store.transaction() as conn`: short transactions, one at a time, committed in groups.

Transactions of one process take turns, so they never conflict. Those that come together share one
DuckDB transaction and one disk flush, and each returns only after that commit (turns.py).
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Self

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import StoreError
from agentd.domain.news import News
from agentd.domain.redactor import Redactor
from agentd.store.connection import Connection
from agentd.store.engine import Engine
from agentd.store.hub import Hub
from agentd.store.schema import admit
from agentd.store.turns import Turns

_inside: ContextVar[bool] = ContextVar("agentd_inside_transaction", default=False)


class Store(Capability):
    """The database of one home. Opens nothing before the first transaction.

    `redactor`: takes secrets out of everything that is written.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_s: float = 30.0,
        transaction_s: float = 5.0,
        announce: Callable[[News], None] = lambda _: None,
        redactor: Redactor | None = None,
    ) -> None:
        self.path = path
        self.redactor = redactor or Redactor()
        self._hub = Hub(path, busy_s=busy_s, admit=admit)
        self._engine = Engine(self._hub)
        self._transaction_s = transaction_s + busy_s
        self._turns = Turns(self._engine, announce)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """A connection of its own; committed and on disk when the block has been left.

        An exception inside rolls back. Raises StoreError when a statement or the commit fails, and
        when the block takes longer than its time: a transaction never waits for the world.
        """
        if _inside.get():
            raise StoreError("a transaction is open in this call already; use its connection")
        connection = Connection(self._turns, self.redactor)
        inside = _inside.set(True)
        try:
            with anyio.fail_after(self._transaction_s):
                yield connection
        except BaseException as error:
            await connection.abandon(error)
            if isinstance(error, TimeoutError):
                raise StoreError(_TOO_LONG) from error
            raise
        finally:
            _inside.reset(inside)
        await connection.finish()

    def untouched(self) -> bool:
        """Whether nobody has written since this store came to rest. Two `stat`s, no waiting."""
        return self._hub.untouched()

    async def ping(self) -> None:
        """Hold the file for a transaction that reads nothing. Raises StoreError."""
        async with self.transaction() as conn:
            await conn.fetch_value("SELECT 1")

    async def aclose(self) -> None:
        """Let go of the file and end the database thread."""
        await anyio.to_thread.run_sync(self._engine.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()


_TOO_LONG = (
    "a transaction stayed open for too long and was rolled back; what waits on a network, a "
    "process or a person must declare `Store` and open short ones"
)
