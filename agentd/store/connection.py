"""What one open transaction offers. Names as users of asyncpg know them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from agentd.domain.capability import Capability
from agentd.domain.errors import StoreError
from agentd.domain.run import Run
from agentd.store.batch import Batch, Owner, Statement
from agentd.store.engine import Engine
from agentd.store.hub import Row
from agentd.store.queries import Query


class Group:
    """Short transactions that end in one commit, and the statements that wait to be sent."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch = Batch()
        self._unsent: list[Statement] = []

    def add(self, statement: Statement) -> None:
        self._unsent.append(statement)

    async def send(self) -> None:
        """Run everything added so far, in order."""
        batch, statements = self._batch, self._take()
        await self._engine.call(lambda hub: batch.run(hub, statements))

    async def forget(self, owner: Owner) -> None:
        """Undo one member; the others stay."""
        self._unsent = [statement for statement in self._unsent if statement.owner is not owner]
        batch = self._batch
        await self._engine.call(lambda hub: batch.forget(hub, owner))

    async def commit(self) -> None:
        batch, statements = self._batch, self._take()
        await self._engine.call(lambda hub: batch.commit(hub, statements))

    def _take(self) -> list[Statement]:
        statements, self._unsent = self._unsent, []
        return statements


class Connection(Capability):
    """Short-lived: valid inside its `async with store.transaction()`, for one coroutine."""

    def __init__(self, group: Group) -> None:
        self.owner = Owner()
        self.announces = False
        self._group = group
        self._closed = False

    async def fetch(self, query: Query | str, /, **parameters: Any) -> list[Row]:
        """All rows, as dicts. Raises StoreError; this transaction is then over."""
        statement = self._add(query, parameters)
        await self._group.send()
        if self.owner.failure is not None:
            raise self.owner.failure
        assert statement.rows is not None
        return statement.rows

    async def fetch_one(self, query: Query | str, /, **parameters: Any) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch(query, **parameters)
        return rows[0] if rows else None

    async def fetch_value(self, query: Query | str, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetch_one(query, **parameters)
        return next(iter(row.values())) if row else None

    async def execute(self, query: Query | str, /, **parameters: Any) -> None:
        """Run a statement whose rows nobody needs.

        It travels with the next fetch or the commit: an error of it shows there, still before the
        transaction counts as done.
        """
        self._add(query, parameters)

    async def execute_many(self, query: Query | str, rows: Sequence[dict[str, Any]], /) -> None:
        """The statement once for each set of parameters."""
        for parameters in rows:
            self._add(query, parameters)

    def fence(self, run: Run) -> None:
        """Let this transaction count only if `run` still owns its task at the commit.

        Else leaving the block raises RunLost and nothing of it is stored.
        """
        self.owner.run = run

    def announce(self) -> None:
        """After the commit, tell this and the other processes that the queue changed."""
        self.announces = True

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator["Connection"]:
        """The same transaction: tables work on a store and inside an open transaction alike."""
        yield self

    def close(self) -> None:
        self._closed = True

    def _add(self, query: Query | str, parameters: dict[str, Any]) -> Statement:
        if self._closed:
            raise StoreError("this transaction is closed; open a new one")
        if self.owner.failure is not None:
            raise StoreError("this transaction was ended by an error; open a new one")
        sql = query if isinstance(query, str) else query.sql
        statement = Statement(self.owner, sql, parameters)
        self._group.add(statement)
        return statement


class Transactor(Protocol):
    """Whatever a table can work on: the store, or the connection of an open transaction."""

    def transaction(self) -> AbstractAsyncContextManager[Connection]: ...
