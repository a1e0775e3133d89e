"""What systemd is told: that the daemon is ready, that it lives, that it stops (sd_notify).

Without NOTIFY_SOCKET nobody listens and nothing is sent. Source: sd_notify(3), systemd.service(5).
"""

import os
import socket
from collections.abc import Callable, MutableMapping
from typing import Self

import anyio
import structlog

_log = structlog.get_logger()
_PINGS_PER_TIMEOUT = 2  # as sd_watchdog_enabled(3) recommends


class Notifier:
    """`address`: a path, or @name in the abstract space. `watchdog_s`: None asks for no pings."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self._watchdog_s = watchdog_s if address else None
        self._complained = False
        self._status = ""

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> Self:
        """Takes the variables out: what this process starts must not speak for it."""
        address = environment.pop("NOTIFY_SOCKET", None)
        microseconds = environment.pop("WATCHDOG_USEC", "")
        meant = environment.pop("WATCHDOG_PID", "") or str(os.getpid())
        wanted = microseconds.isdecimal() and int(microseconds) > 0 and meant == str(os.getpid())
        return cls(address, int(microseconds) / 1_000_000 if wanted else None)

    def ready(self) -> None:
        self._send("READY=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; sent when it has changed."""
        line = " ".join(text.split())
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}")

    async def run(self, stopping: anyio.Event, well: Callable[[], bool]) -> None:
        """Say that the daemon lives, while it is `well`, and that it stops. Until cancelled."""
        every_s = self._watchdog_s / _PINGS_PER_TIMEOUT if self._watchdog_s else None
        told = False
        while True:
            if every_s is not None and well():
                self._send("WATCHDOG=1")
            with anyio.move_on_after(every_s):
                await (anyio.sleep_forever() if told else stopping.wait())
            if stopping.is_set() and not told:
                self._send("STOPPING=1")
                told = True

    def _send(self, message: str) -> None:
        """Never blocks, never fails: the work goes on without a listener."""
        if self._address is None:
            return
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(message.encode(), address)
        except OSError as error:
            if not self._complained:
                _log.warning("the service manager could not be told", error=str(error))
                self._complained = True
