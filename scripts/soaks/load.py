"""Tasks of every kind, enqueued at an even rate, and the model that plays them, well or ill."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import structlog

from agentd.domain.clock import SystemClock
from agentd.domain.errors import AgentdError
from agentd.domain.ids import SessionId, TaskId
from agentd.domain.task import NewTask
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.messages_turns import (
    DONE,
    Answer,
    Behaviour,
    Body,
    Call,
    Failure,
    Turn,
    by_prompt,
    call,
    script,
)

_log = structlog.get_logger()
_PER_SESSION = 20  # then the conversation has become long, and a new one begins
_CANCEL_AFTER_S = 0.5


def _echo(text: str) -> Call:
    return Call("mcp_exec", {"server": "plain", "tool": "echo", "args": {"text": text}})


_DIE = {"server": "plain", "tool": "die", "args": {"text": ""}}
# Of one in eight, the second try is wrong, as a model's is now and then.
_FILES = script(
    Turn(calls=(Call("ls", {"path": "."}), Call("list_tasks", {"limit": 3})), delay_s=0.02),
    Turn(thinking="Hm.", calls=(Call("write", {"path": "a/b.txt", "content": "x" * 2000}),)),
    call("read", path="a/b.txt"),
    call("read", path="no/such/file"),
    DONE,
)
_KINDS: dict[str, Behaviour] = {
    "files": _FILES,
    "waits": script(call("wait_task", reason="a moment", until="1s"), DONE),
    "long": script(Turn(calls=DONE.calls, delay_s=2)),
    "talk": lambda _: DONE,
    "short": script(DONE),
    "mcp": script(
        Turn(calls=(_echo("a"), _echo("b"))),
        call("mcp_search", query="echo"),
        Turn(calls=(Call("mcp_exec", {"server": "plain", "tool": "fail"}),)),
        DONE,
    ),
    # The server ends in the middle of the call and is started again.
    "dies": script(Turn(calls=(Call("mcp_exec", _DIE),)), DONE),
}
_ORDER = ("files", "mcp", "talk", "waits", "short", "mcp", "talk", "long", "mcp", "dies")
ILLS: dict[str, Failure] = {
    "model overloaded (529)": Failure(status=529, type="overloaded_error"),
    "model cuts its replies": Failure(fault="cut"),
    "model falls silent": Failure(fault="stall"),
    "model drops connections": Failure(fault="drop"),
}


@dataclass
class Model:
    """`ill`: what it answers to everything, while it is ill."""

    ill: Failure | None = None
    _well: Behaviour = field(default_factory=lambda: by_prompt(_KINDS))

    def __call__(self, body: Body) -> Answer:
        if self.ill is not None:
            return self.ill
        answer = self._well(body)
        assert isinstance(answer, Turn | Failure)  # none of the behaviours here waits
        return answer


@dataclass
class Load:
    """`acknowledged`: task id → its kind. `enqueued_ms`: when (from the start) and how long."""

    store: Store
    rate: float
    acknowledged: dict[TaskId, str] = field(default_factory=dict[TaskId, str])
    enqueued_ms: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    async def run(self, started_s: float, is_over: Callable[[], bool]) -> None:
        """Enqueue until `is_over`; what is cancelled is waited for."""
        tasks = TaskStore(self.store, SystemClock())
        async with anyio.create_task_group() as cancels:
            for number, kind in enumerate(itertools.cycle(_ORDER)):
                if is_over():
                    return
                before = time.monotonic()
                done = await tasks.enqueue(self._task(number, kind))
                took_ms = (time.monotonic() - before) * 1000
                self.acknowledged[done.task.id] = kind
                self.enqueued_ms.append((before - started_s, took_ms))
                if kind == "long" and number % 16 < 8:
                    cancels.start_soon(self._cancel, tasks, done.task.id)
                if kind == "talk":
                    await self._say(done.task.session_id)
                await anyio.sleep(max(0.0, 1 / self.rate - (time.monotonic() - before)))

    def _task(self, number: int, kind: str) -> NewTask:
        session = SessionId(f"talk-{number // (len(_ORDER) * _PER_SESSION)}")
        return NewTask(
            prompt=f"{kind} {number}",
            session_id=session if kind == "talk" else None,
            enqueued_by="soak",
        )

    async def _cancel(self, tasks: TaskStore, task_id: TaskId) -> None:
        await anyio.sleep(_CANCEL_AFTER_S)
        try:
            await tasks.cancel(task_id, reason="soak")
        except AgentdError as error:  # it has ended already
            _log.info("not cancelled", task=task_id, error=error.message)

    async def _say(self, session_id: SessionId) -> None:
        await SessionStore(self.store, SystemClock()).send(session_id, "By the way.", "soak")
