"""What one open transaction offers. Names as users of asyncpg know them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import StoreError
from agentd.domain.news import News
from agentd.domain.redactor import Redactor
from agentd.domain.run import Run
from agentd.store.batch import Owner, Statement
from agentd.store.hub import Row
from agentd.store.queries import Query
from agentd.store.turns import Group, Turns


class Connection(Capability):
    """Short-lived: valid inside its `async with store.transaction()`, for one coroutine.

    Secrets are taken out of all parameters but ids.
    """

    def __init__(self, turns: Turns, redactor: Redactor) -> None:
        self._turns = turns
        self._redactor = redactor
        self._owner = Owner()
        self._group: Group | None = None  # None: nothing was read yet
        self._statements: list[Statement] = []
        self._news = News.NONE
        self._closed = False

    async def fetch(self, query: Query | str, /, **parameters: Any) -> list[Row]:
        """All rows, as dicts. Raises StoreError; this transaction is then over."""
        (rows,) = await self.fetch_each((query, parameters))
        return rows

    async def fetch_each(self, *queries: tuple[Query | str, dict[str, Any]]) -> list[list[Row]]:
        """The rows of each query, one after another in a single way to the database and back."""
        asked = [self._add(query, parameters) for query, parameters in queries]
        if self._group is None:
            self._group = await self._turns.take()
        self._group.add(self._take())
        await self._group.send()
        if self._owner.failure is not None:
            raise self._owner.failure
        return [statement.rows for statement in asked]

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
        self._add(query, parameters, wants_rows=False)

    async def execute_many(
        self, query: Query | str, rows: Sequence[dict[str, Any]], /, *, is_clean: bool = False
    ) -> None:
        """The statement once for each set of parameters. `is_clean`: they hold no secrets."""
        for parameters in rows:
            self._add(query, parameters, wants_rows=False, is_clean=is_clean)

    def fence(self, run: Run, *, ends: bool = False) -> None:
        """Let this transaction count only if `run` still owns its task at the commit.

        Else leaving the block raises RunLost and nothing of it is stored. `ends`: the transaction
        must have ended the task, else leaving the block raises StillRunning.
        """
        self._owner.run = run
        self._owner.ends |= ends

    def announce(self, news: News = News.QUEUE) -> None:
        """After the commit, tell this and the other processes that the queue changed."""
        self._news = max(self._news, news)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator["Connection"]:
        """The same transaction: tables work on a store and inside an open transaction alike."""
        yield self

    async def finish(self) -> None:
        """Return once everything is on disk. Raises StoreError, RunLost.

        A cancellation waits for that: whoever is cut off knows what was stored.
        """
        self._closed = True
        group, statements = self._group, self._take()
        with anyio.CancelScope(shield=True):
            if group is not None:
                group.add(statements)
                await self._turns.give(group, news=self._news)
                await group.settled.wait()
            elif statements or self._news:
                await self._turns.ride(statements, news=self._news)
        failure = self._owner.failure or (group and group.failure)
        if failure is not None:
            raise failure

    async def abandon(self, error: BaseException) -> None:
        """Undo what was done; what others of the group did stays."""
        self._closed = True
        self._owner.failure = error
        if self._group is not None:
            with anyio.CancelScope(shield=True):
                await self._group.forget(self._owner)
                await self._turns.give(self._group, news=News.NONE)

    def _add(
        self,
        query: Query | str,
        parameters: dict[str, Any],
        *,
        wants_rows: bool = True,
        is_clean: bool = False,
    ) -> Statement:
        if self._closed:
            raise StoreError("this transaction is closed; open a new one")
        if self._owner.failure is not None:
            raise StoreError("this transaction was ended by an error; open a new one")
        ours = not isinstance(query, str)
        sql = query.sql if ours else query
        if self._redactor and not is_clean:
            parameters = {
                name: value if name.endswith(("id", "ids")) else self._redactor.cleaned(value)
                for name, value in parameters.items()
            }
        statement = Statement(self._owner, sql, parameters, wants_rows, ours)
        self._statements.append(statement)
        return statement

    def _take(self) -> list[Statement]:
        statements, self._statements = self._statements, []
        return statements


class Transactor(Protocol):
    """Whatever a table can work on: the store, or the connection of an open transaction."""

    def transaction(self) -> AbstractAsyncContextManager[Connection]: ...
