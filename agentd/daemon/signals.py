"""SIGTERM and SIGINT: the first asks the daemon to drain, the second ends it at once."""

import os
import signal

import anyio
import structlog

_log = structlog.get_logger()


async def watch_signals(stopping: anyio.Event) -> None:
    """Set `stopping` at the first signal. Runs until cancelled."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for number in received:
            name = signal.Signals(number).name
            if stopping.is_set():
                _log.warning("leaving at once", signal=name)
                # Safe at any moment: what was acknowledged is on disk, the rest is taken over.
                os._exit(1)
            _log.info("draining; a second signal leaves at once", signal=name)
            stopping.set()
