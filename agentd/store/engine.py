"""The one thread that touches DuckDB, and when it lets go of the file.

Jobs run in the order in which they were handed over. Between two transactions the thread looks
whether another process waits, and lets go at once; two processes that both work without pause hold
the file a little longer each, which halves the number of hand-overs. Numbers: docs/benchmarks.md.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from agentd.store.hub import Hub

T = TypeVar("T")

_IDLE_S = 0.1  # kept attached this long without work: the next call often follows soon
_GLANCE_S = 0.0006  # how often a holder that has just become idle looks for waiters …
_FRESH_S = 0.004  # … for this long; whoever was told of a commit comes at once
_SLOW_GLANCE_S = 0.004  # … and how often after that
_HOLD_S = 0.010  # least hold while another process is as busy as this one
_BUSY_PEER_S = 0.025  # asked again within this time of the last hand-over: that peer is busy


def tell(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: object) -> None:
    """Call `what` on the loop, from this thread."""
    with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
        loop.call_soon_threadsafe(what, *arguments)


class _Job:
    __slots__ = ("future", "loop", "work")

    def __init__(self, work: Callable[[Hub], Any]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def run(self, hub: Hub) -> None:
        try:
            result, error = self.work(hub), None
        except BaseException as raised:  # noqa: BLE001 - handed to the awaiting coroutine
            result, error = None, raised
        tell(self.loop, self._settle, result, error)

    def _settle(self, result: object, error: BaseException | None) -> None:
        if self.future.done():
            return  # the awaiting coroutine was cancelled
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Engine:
    """Runs functions of the hub on its own thread."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._jobs: queue.SimpleQueue[Callable[[Hub], None] | None] = queue.SimpleQueue()
        self._used_at = self._yielded_at = 0.0
        self._thread = threading.Thread(target=self._serve, name="agentd-store", daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[Hub], T]) -> T:
        """What `work` returns, run on the thread. A cancelled caller leaves; the work ends."""
        job = _Job(work)
        self._jobs.put(job.run)
        result: T = await job.future
        return result

    def post(self, work: Callable[[Hub], None]) -> None:
        """Let `work` run on the thread; it must not raise."""
        self._jobs.put(work)

    def close(self) -> None:
        """Detach and end the thread. Blocks until both are done."""
        self._jobs.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._patience_s())
            except queue.Empty:
                self._while_idle()
                continue
            if job is None:
                self._hub.close()
                return
            job(self._hub)
            self._used_at = time.monotonic()
            self._yield_to_waiters()

    def _patience_s(self) -> float | None:
        if not self._hub.attached:
            return None
        fresh = time.monotonic() - self._used_at < _FRESH_S
        return _GLANCE_S if fresh else _SLOW_GLANCE_S

    def _while_idle(self) -> None:
        if self._hub.in_transaction:
            return
        if time.monotonic() - self._used_at >= _IDLE_S:
            self._let_go()
        elif self._hub.lease.wanted():
            self._yield()

    def _yield_to_waiters(self) -> None:
        hub = self._hub
        if hub.in_transaction or not hub.attached:
            return
        busy_peer = hub.attached_at - self._yielded_at < _BUSY_PEER_S
        if busy_peer and time.monotonic() - hub.attached_at < _HOLD_S:
            return
        if hub.lease.wanted():
            self._yield()

    def _yield(self) -> None:
        self._let_go()
        self._yielded_at = time.monotonic()

    def _let_go(self) -> None:
        try:
            self._hub.detach()
        except Exception:  # noqa: BLE001 - this thread must go on whatever the disk does
            # The commits before it were acknowledged and are in the log; the next attach says more.
            self._hub.reset()
