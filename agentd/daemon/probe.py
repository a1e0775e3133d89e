"""Asks the database for a sign of life, without waiting longer than somebody may care to.

An idle daemon's database is left alone: its last answer stands while nobody has written.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from agentd.daemon.checks import Answer
from agentd.domain.clock import Clock
from agentd.domain.errors import AgentdError


class DatabaseProbe:
    """`ask` runs a trivial transaction. `untouched`: see Store. `patience_s`: for one answer."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[None]],
        untouched: Callable[[], bool],
        clock: Clock,
        patience_s: float,
    ) -> None:
        self._ask = ask
        self._untouched = untouched
        self._clock = clock
        self._patience_s = patience_s
        self._asked_at_s = 0.0
        self._answered: anyio.Event | None = None
        self._last = Answer()  # a daemon that runs has registered itself there

    async def answer(self, group: TaskGroup) -> Answer:
        """Of now. A question that was not answered in time goes on in `group`."""
        if self._answered is None:
            if self._last.error is None and self._untouched():
                return Answer()
            self._answered = anyio.Event()
            self._asked_at_s = self._clock.monotonic()
            group.start_soon(self._question, self._answered)
        with anyio.move_on_after(self._patience_s):
            # The wait can be given up; the transaction can not while another process has the file.
            await self._answered.wait()
            self._answered = None
            return self._last
        waited_s = self._clock.monotonic() - self._asked_at_s
        return Answer(error=f"no answer for {waited_s:.1f} s")

    async def _question(self, answered: anyio.Event) -> None:
        try:
            await self._ask()
            self._last = Answer(self._clock.monotonic() - self._asked_at_s)
        except Exception as error:  # noqa: BLE001 - whatever it was, the database did not answer
            self._last = Answer(
                error=error.message if isinstance(error, AgentdError) else repr(error)
            )
        answered.set()
