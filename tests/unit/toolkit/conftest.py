"""A registry of made-up tools, and what they may be given."""

import pytest

from agentd.domain.clock import Clock
from agentd.store.connection import Connection
from agentd.store.store import Store
from agentd.toolkit.inject import CallContext, Injector, PerCall
from tests.clock import HandClock


@pytest.fixture
def injector(store: Store, clock: HandClock) -> Injector:
    return Injector(
        {
            Store: lambda _: store,
            Clock: lambda _: clock,
            Connection: lambda context: PerCall(context.store.transaction()),
        }
    )


@pytest.fixture
def context(store: Store) -> CallContext:
    return CallContext(store)
