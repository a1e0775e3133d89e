"""Capabilities: a function gets what its signature asks for, for the time of one call."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from agentd.domain.errors import ToolError
from agentd.domain.run import Run
from agentd.store.connection import Transactor
from agentd.toolkit.definition import Need
from agentd.toolkit.progress import Progress


@dataclass(frozen=True, slots=True)
class CallContext:
    """Of one call. `store`: the store, or the open transaction of a transactional call.

    `run`: None when a person calls the tool. `call_id`: the same when a call is run again after a
    crash; what is idempotent may use it as its key. `progress`: None where nobody listens.
    """

    store: Transactor
    run: Run | None = None
    call_id: str | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class PerCall:
    """A provider's way to say: enter this for the call, hand in what it gives, then leave it."""

    manager: AbstractAsyncContextManager[object]


Provider = Callable[[CallContext], object]


class Injector:
    """Knows how each capability is made."""

    def __init__(self, providers: Mapping[type, Provider]) -> None:
        self._providers = dict(providers)

    @asynccontextmanager
    async def open(
        self, needs: Mapping[str, Need], context: CallContext
    ) -> AsyncGenerator[dict[str, Any]]:
        """The arguments for `needs`; nothing that is not needed is made. Raises ToolError."""
        async with AsyncExitStack() as stack:
            arguments: dict[str, Any] = {}
            for name, need in needs.items():
                value = self._make(need, context)
                if isinstance(value, PerCall):
                    value = await stack.enter_async_context(value.manager)
                arguments[name] = value
            yield arguments

    def _make(self, need: Need, context: CallContext) -> object:
        provider = self._providers.get(need.kind)
        value = provider(context) if provider else None
        if value is None and not need.optional:
            raise ToolError(
                "unavailable",
                f"this needs {need.kind.__name__}, which is not there in this place",
                next_action_hint=_HINTS.get(need.kind.__name__),
            )
        return value


_HINTS = {"Run": "It works only inside a run of a task, not from the command line."}
