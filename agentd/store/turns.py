"""Who may use the database next, and who shares a commit with whom.

A transaction that reads takes the turn with its first fetch and keeps it to its end: what it reads
can not change under it. One that only writes takes no turn: its statements wait until somebody
commits, and go along. So twenty small writes that come together cost one commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from agentd.domain.errors import StoreError
from agentd.store.batch import Batch, Owner, Statement
from agentd.store.engine import Engine

_GROUP_MOST = 64  # reading transactions in one commit: bounds what one failure makes run again


@dataclass(slots=True)
class Group:
    """Transactions that end in one commit, and the statements that wait to be sent."""

    engine: Engine
    batch: Batch = field(default_factory=Batch)
    unsent: list[Statement] = field(default_factory=list[Statement])
    members: int = 0
    announces: bool = False
    failure: BaseException | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    def add(self, statements: Sequence[Statement]) -> None:
        self.unsent.extend(statements)

    async def send(self) -> None:
        """Run everything added so far, in order."""
        batch, statements = self.batch, self._take()
        await self.engine.call(lambda hub: batch.run(hub, statements))

    async def forget(self, owner: Owner) -> None:
        """Undo one member; the others stay."""
        self.unsent = [statement for statement in self.unsent if statement.owner is not owner]
        batch = self.batch
        try:
            await self.engine.call(lambda hub: batch.forget(hub, owner))
        except StoreError as error:
            self.failure = error

    async def commit(self) -> None:
        batch, statements = self.batch, self._take()
        await self.engine.call(lambda hub: batch.commit(hub, statements))

    def _take(self) -> list[Statement]:
        statements, self.unsent = self.unsent, []
        return statements


@dataclass(slots=True)
class _Passengers:
    """Transactions that only wrote: they wait for somebody to commit."""

    statements: list[Statement] = field(default_factory=list[Statement])
    announces: bool = False
    failure: BaseException | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)


class Turns:
    """`announce` is called after each commit that asked for it."""

    def __init__(self, engine: Engine, announce: Callable[[], None]) -> None:
        self._engine = engine
        self._announce = announce
        self._turn = anyio.Lock(fast_acquire=True)
        self._open: Group | None = None
        self._passengers: _Passengers | None = None

    async def take(self) -> Group:
        """Wait for the turn. The group that the caller belongs to; it must call `give` once."""
        await self._turn.acquire()
        self._open = self._open or Group(self._engine)
        return self._open

    async def give(self, group: Group, *, announces: bool) -> None:
        """End a turn; commit, unless somebody follows who will. `settled` says when."""
        group.members += 1
        group.announces |= announces
        try:
            followed = self._turn.statistics().tasks_waiting > 0
            if not followed or group.failure is not None or group.members >= _GROUP_MOST:
                await self._commit(group)
        finally:
            self._turn.release()

    async def ride(self, statements: Sequence[Statement], *, announces: bool) -> None:
        """Let statements go along with the next commit. Raises when that fails as a whole."""
        first = self._passengers is None
        mine = self._passengers = self._passengers or _Passengers()
        mine.statements.extend(statements)
        mine.announces |= announces
        if first:
            with anyio.CancelScope(shield=True):
                async with self._turn:
                    if not mine.settled.is_set():
                        await self._commit(self._open or Group(self._engine))
        await mine.settled.wait()
        if mine.failure is not None:
            raise mine.failure

    async def _commit(self, group: Group) -> None:
        self._open = None
        riding, self._passengers = self._passengers or _Passengers(), None
        group.add(riding.statements)
        try:
            if group.failure is None:
                await group.commit()
        except StoreError as error:
            group.failure = error
        finally:
            riding.failure = group.failure
            group.settled.set()
            riding.settled.set()
        if group.failure is None and (group.announces or riding.announces):
            self._announce()
