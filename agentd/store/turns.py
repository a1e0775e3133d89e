"""Who may use the database next, and who shares a commit with whom.

A transaction that reads takes the turn with its first fetch and keeps it to its end: what it reads
can not change under it. One that only writes takes no turn: it rides along with the next commit;
the database thread commits for all who wait as soon as it is free. So twenty small writes that come
together cost one commit.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from agentd.domain.errors import StoreError
from agentd.domain.news import News
from agentd.store.batch import Batch, Owner, Statement
from agentd.store.engine import Engine, tell
from agentd.store.hub import Hub

_GROUP_MOST = 64  # reading transactions in one commit: bounds what one failure makes run again


@dataclass(slots=True)
class Group:
    """Reading transactions that end in one commit, and the statements that wait to be sent."""

    engine: Engine
    batch: Batch = field(default_factory=Batch)
    unsent: list[Statement] = field(default_factory=list[Statement])
    members: int = 0
    news: News = News.NONE
    failure: BaseException | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    def add(self, statements: Sequence[Statement]) -> None:
        self.unsent.extend(statements)

    def take(self) -> list[Statement]:
        statements, self.unsent = self.unsent, []
        return statements

    async def send(self) -> None:
        """Run everything added so far, in order."""
        batch, statements = self.batch, self.take()
        await self.engine.call(lambda hub: batch.run(hub, statements))

    async def forget(self, owner: Owner) -> None:
        """Undo one member; the others stay."""
        self.unsent = [statement for statement in self.unsent if statement.owner is not owner]
        batch = self.batch
        try:
            await self.engine.call(lambda hub: batch.forget(hub, owner))
        except StoreError as error:
            self.failure = error


@dataclass(slots=True, eq=False)
class _Rider:
    """A transaction that only writes, until somebody has committed it."""

    statements: Sequence[Statement]
    news: News
    settled: asyncio.Future[None]


class Turns:
    """`announce` is called after each commit that asked for it."""

    def __init__(self, engine: Engine, announce: Callable[[News], None]) -> None:
        self._engine = engine
        self._announce = announce
        self._turn = anyio.Lock(fast_acquire=True)
        self._open: Group | None = None
        self._riders: deque[_Rider] = deque()  # filled by the loop, emptied by the thread
        self._driving = False  # `_drive` is posted and has not begun

    async def take(self) -> Group:
        """Wait for the turn. The group that the caller belongs to; it must call `give` once."""
        try:
            await self._turn.acquire()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._commit_what_was_left()
            raise
        self._open = self._open or Group(self._engine)
        return self._open

    async def give(self, group: Group, *, news: News) -> None:
        """End a turn; commit, unless somebody follows who will. `settled` says when."""
        group.members += 1
        group.news = max(group.news, news)
        try:
            followed = self._turn.statistics().tasks_waiting > 0
            if not followed or group.failure is not None or group.members >= _GROUP_MOST:
                await self._commit(group)
        finally:
            self._turn.release()

    async def ride(self, statements: Sequence[Statement], *, news: News) -> None:
        """Let statements go along with the next commit. Raises when that fails as a whole."""
        rider = _Rider(statements, news, asyncio.get_running_loop().create_future())
        self._riders.append(rider)
        if not self._driving:
            self._driving = True
            self._engine.post(self._drive)
        await rider.settled

    async def _commit_what_was_left(self) -> None:
        """A group whose commit was left to somebody who was cancelled while it waited."""
        if self._open is not None and not self._turn.locked():
            self._turn.acquire_nowait()
            try:
                await self._commit(self._open)
            finally:
                self._turn.release()

    async def _commit(self, group: Group) -> None:
        self._open = None
        batch, statements = group.batch, group.take()
        try:
            if group.failure is None:
                await self._engine.call(lambda hub: self._commit_all(hub, batch, statements))
            else:
                self._engine.post(self._drive)  # whoever waited for this group to commit
        except BaseException as error:
            group.failure = error
            if not isinstance(error, StoreError):
                raise
        finally:
            group.settled.set()
        if group.failure is None and group.news:
            self._announce(group.news)

    def _drive(self, hub: Hub) -> None:
        """On the thread: commit for the riders, unless an open group is going to."""
        self._driving = False  # before looking: who comes from now on posts again
        if self._riders and not hub.in_transaction:
            with contextlib.suppress(Exception):  # the riders are told
                self._commit_all(hub, Batch(), [])

    def _commit_all(self, hub: Hub, batch: Batch, statements: list[Statement]) -> None:
        """On the thread: commit `statements` and those of all riders. Raises StoreError."""
        riders: list[_Rider] = []
        while self._riders:  # only this thread takes any out
            riders.append(self._riders.popleft())
        failure: BaseException | None = None
        try:
            batch.commit(
                hub, [*statements, *(each for rider in riders for each in rider.statements)]
            )
        except BaseException as error:
            failure = error
            raise
        finally:
            if riders:
                tell(riders[0].settled.get_loop(), self._settle, riders, failure)

    def _settle(self, riders: Sequence[_Rider], failure: BaseException | None) -> None:
        for rider in riders:
            if rider.settled.done():
                continue
            if failure is None:
                rider.settled.set_result(None)
            else:
                rider.settled.set_exception(failure)
        news = max(rider.news for rider in riders)
        if failure is None and news:
            self._announce(news)
