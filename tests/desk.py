"""A whole agentd in this process: a home, its store, and a daemon that asks a test server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agentd.app import serve
from agentd.config import Config, load_config
from agentd.daemon.supervisor import Until
from agentd.daemon.wake import poke
from agentd.domain.clock import SystemClock
from agentd.domain.event import Event, EventKind
from agentd.domain.ids import TaskId
from agentd.domain.task import NewTask, Task
from agentd.home import make_home
from agentd.store.budgets import BudgetStore
from agentd.store.events import EventStore
from agentd.store.runs import RunStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.messages_api import MessagesApi
from tests.messages_turns import Answer, Behaviour, Turn, script

QUICK = {
    "agent.model": "anthropic:claude-haiku-4-5",
    "models.retry_base_seconds": 0.001,
    "models.stall_seconds": 5,
    "daemon.drain_seconds": 5,
    "agent.max_attempts": 1,
}


@dataclass(frozen=True)
class Desk:
    """`api` answers the daemon's questions."""

    config: Config
    store: Store
    api: MessagesApi

    @property
    def tasks(self) -> TaskStore:
        return TaskStore(self.store, SystemClock())

    @property
    def runs(self) -> RunStore:
        return RunStore(self.store, SystemClock())

    @property
    def sessions(self) -> SessionStore:
        return SessionStore(self.store, SystemClock())

    @property
    def workspace(self) -> Path:
        return self.config.workspace_path

    async def raise_limit(self, task: Task, max_cost_microusd: int) -> None:
        await BudgetStore(self.store, SystemClock()).raise_limits(task.id, max_cost_microusd, None)

    async def enqueue(self, prompt: str = "Do it.", **facts: Any) -> Task:
        new = NewTask(prompt=prompt, enqueued_by="test", **facts)
        return (await self.tasks.enqueue(new)).task

    async def drain(self) -> None:
        """Work until nothing is left that could be worked now."""
        await serve(self.config, self.store, Until.DRAINED)

    async def work(self, prompt: str = "Do it.", **facts: Any) -> Task:
        """Enqueue a task, work the queue empty, and give the task as it is then."""
        task = await self.enqueue(prompt, **facts)
        await self.drain()
        return await self.tasks.get(task.id)

    async def journal(self, task: Task) -> Sequence[Event]:
        return await EventStore(self.store, SystemClock()).of_session(task.session_id)

    async def results(self, task: Task) -> list[Mapping[str, Any]]:
        """The bodies of the tool results, in order."""
        events = await self.journal(task)
        return [event.body for event in events if event.kind is EventKind.TOOL_RESULT]

    async def notes(self, task: Task) -> list[Mapping[str, Any]]:
        return [e.body for e in await self.journal(task) if e.kind is EventKind.NOTE]

    async def rows(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        async with self.store.transaction() as conn:
            return list(await conn.fetch(sql, **parameters))

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[None]:
        """A daemon that works while the block runs, and is cut off after it."""
        async with anyio.create_task_group() as group:
            group.start_soon(serve, self.config, self.store, Until.STOPPED)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def until(self, task_id: TaskId, *states: str) -> Task:
        """The task as soon as it is in one of `states`."""
        with anyio.fail_after(10):
            while True:
                task = await self.tasks.get(task_id)
                if task.state in states:
                    return task
                await anyio.sleep(0.005)


@asynccontextmanager
async def desk(
    path: Path, *turns: Turn, behave: Behaviour | None = None, **settings: Any
) -> AsyncIterator[Desk]:
    """`turns` are played in order, or `behave` answers. `settings`: dotted keys with `__`."""
    home = path / "home"
    make_home(home)
    async with MessagesApi(behave or script(*turns)) as api:
        access = {"models.anthropic.api_key": "key-1", "models.anthropic.base_url": api.url}
        asked = {name.replace("__", "."): value for name, value in settings.items()}
        config = load_config(home, {**QUICK, **access, **asked})
        announce = partial(poke, config.run_path)
        async with Store(config.database_path, busy_s=10, announce=announce) as store:
            yield Desk(config, store, api)
        assert not api.violations, api.violations


def always(answer: Answer) -> Behaviour:
    """The same answer to every request."""
    return lambda _: answer
