"""`async with store.transaction() as conn`: short transactions, one at a time, committed in groups.

Transactions of one process take turns, so they never conflict. Those that queue up behind each
other share one DuckDB transaction and one disk flush, and each returns only after that commit.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Self

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import StoreError
from agentd.store.connection import Connection, Group
from agentd.store.engine import Engine
from agentd.store.hub import Hub
from agentd.store.schema import admit

_GROUP_MOST = 64  # transactions in one commit: bounds what one failure makes run again
_inside: ContextVar[bool] = ContextVar("agentd_inside_transaction", default=False)


class _OpenGroup:
    """The group that the next transaction joins."""

    def __init__(self, engine: Engine) -> None:
        self.group = Group(engine)
        self.members = 0
        self.announces = False
        self.settled = anyio.Event()
        self.failure: BaseException | None = None


class Store(Capability):
    """The database of one home. Opens nothing before the first transaction."""

    def __init__(
        self,
        path: Path,
        *,
        busy_s: float = 30.0,
        transaction_s: float = 5.0,
        announce: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self._engine = Engine(Hub(path, busy_s=busy_s, admit=admit))
        self._transaction_s = transaction_s + busy_s
        self._announce = announce
        self._turn = anyio.Lock(fast_acquire=True)
        self._open: _OpenGroup | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """A connection of its own; committed and on disk when the block has been left.

        An exception inside rolls back. Raises StoreError when a statement or the commit fails, and
        when the block takes longer than its time: a transaction never waits for the world.
        """
        if _inside.get():
            raise StoreError("a transaction is open in this call already; use its connection")
        async with self._turn:
            joined = self._open = self._open or _OpenGroup(self._engine)
            connection = Connection(joined.group)
            inside = _inside.set(True)
            try:
                with anyio.fail_after(self._transaction_s):
                    yield connection
            except BaseException as error:
                connection.owner.failure = error
                with anyio.CancelScope(shield=True):
                    await self._forget(joined, connection)
                if isinstance(error, TimeoutError):
                    raise StoreError(_TOO_LONG) from error
                raise
            finally:
                _inside.reset(inside)
                connection.close()
                joined.members += 1
                joined.announces |= connection.announces
                if self._is_last(joined):
                    self._open = None
                    with anyio.CancelScope(shield=True):
                        await self._commit(joined)
        await joined.settled.wait()
        failure = connection.owner.failure or joined.failure
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """Let go of the file and end the database thread."""
        await anyio.to_thread.run_sync(self._engine.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    def _is_last(self, joined: _OpenGroup) -> bool:
        nobody_follows = self._turn.statistics().tasks_waiting == 0
        return nobody_follows or joined.failure is not None or joined.members >= _GROUP_MOST

    async def _commit(self, joined: _OpenGroup) -> None:
        try:
            if joined.failure is None:
                await joined.group.commit()
        except StoreError as error:
            joined.failure = error
        finally:
            joined.settled.set()
        if joined.failure is None and joined.announces:
            self._announce()

    async def _forget(self, joined: _OpenGroup, connection: Connection) -> None:
        try:
            await joined.group.forget(connection.owner)
        except StoreError as error:
            joined.failure = error


_TOO_LONG = (
    "a transaction stayed open for too long and was rolled back; what waits on a network, a "
    "process or a person must declare `Store` and open short ones"
)
