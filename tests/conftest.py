"""What every test may ask for: a clock moved by hand, a real store, the tables on it."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from agentd.domain.ids import DaemonId
from agentd.store.daemons import DaemonStore
from agentd.store.events import EventStore
from agentd.store.leases import LeaseStore
from agentd.store.runs import RunStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.clock import HandClock

structlog.configure(  # short, without the local variables of tracebacks
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(),
    ]
)

# Whoever runs the tests in the background lets them ignore Ctrl-C, and their children with them.
signal.signal(signal.SIGINT, signal.default_int_handler)

DAEMON = DaemonId("daemon-a")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(tmp_path / "agentd.duckdb", busy_s=5) as opened:
        yield opened


@pytest.fixture
def tasks(store: Store, clock: HandClock) -> TaskStore:
    return TaskStore(store, clock)


@pytest.fixture
def runs(store: Store, clock: HandClock) -> RunStore:
    return RunStore(store, clock)


@pytest.fixture
def leases(store: Store, clock: HandClock) -> LeaseStore:
    return LeaseStore(store, clock)


@pytest.fixture
def events(store: Store, clock: HandClock) -> EventStore:
    return EventStore(store, clock)


@pytest.fixture
def sessions(store: Store, clock: HandClock) -> SessionStore:
    return SessionStore(store, clock)


@pytest.fixture
def daemons(store: Store, clock: HandClock) -> DaemonStore:
    return DaemonStore(store, clock)
