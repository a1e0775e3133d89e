"""The queue as people and tools see it: enqueue, look, change, cancel, retry, resume."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import CycleRefused, NotFound, Refused
from agentd.domain.ids import SessionId, TaskId, new_id
from agentd.domain.task import NewTask, Priority, Task, TaskState
from agentd.store import rows
from agentd.store.connection import Connection, Transactor
from agentd.store.cycles import find_cycle
from agentd.store.endings import fail_successors
from agentd.store.prefixes import one_of
from agentd.store.queries import load
from agentd.store.sessions import SessionStore

_SQL = load("tasks")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """`created` is False when an unfinished task had the key already."""

    task: Task
    created: bool


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """What a pending task shall become; None leaves a field as it is."""

    prompt: str | None = None
    title: str | None = None
    priority: Priority | None = None
    not_before: datetime | None = None
    after: tuple[TaskId, ...] | None = None


class TaskStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def enqueue(self, new: NewTask) -> Enqueued:
        """Put a task into the queue. On disk when this returns.

        Raises NotFound for an unknown `after`, Refused when one of those has failed already.
        """
        async with self._db.transaction() as conn:
            if new.key is not None:
                known = await conn.fetch_value(_SQL["of_key"], key=new.key)
                if known:
                    return Enqueued(await _get(conn, TaskId(known)), created=False)
            await _check_predecessors(conn, new.after, after_any=new.after_any)
            task_id = TaskId(new_id())
            session_id = new.session_id or SessionId(task_id)
            await SessionStore(conn, self._clock).open(
                session_id, title=new.session_title(), is_new=new.session_id is None
            )
            task = new.as_task(task_id, session_id, self._clock.now())
            await conn.execute(
                _SQL["add"],
                id=task_id,
                session_id=session_id,
                prompt=new.prompt,
                title=new.title,
                priority=str(new.priority),
                has_predecessors=bool(task.after),
                after_any=new.after_any,
                not_before=new.not_before,
                key=new.key,
                model=new.model,
                schedule_id=new.schedule_id,
                max_tool_iterations=new.limits.max_tool_iterations,
                deadline_s=new.limits.deadline_s,
                max_attempts=new.limits.max_attempts,
                max_cost_microusd=new.limits.max_cost_microusd,
                max_total_tokens=new.limits.max_total_tokens,
                enqueued_by=new.enqueued_by,
                now=task.created_at,
            )
            await _set_predecessors(conn, task_id, task.after)
            conn.announce()
            return Enqueued(task, created=True)

    async def get(self, task_id: TaskId) -> Task:
        """Raises NotFound."""
        async with self._db.transaction() as conn:
            return await _get(conn, task_id)

    async def find(self, text: str) -> Task:
        """The task whose id is, starts with or ends with `text`. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            return await _get(conn, TaskId(await one_of(conn, _SQL["ids_like"], "task", text)))

    async def list(
        self,
        *,
        state: TaskState | None = None,
        priority: Priority | None = None,
        session_id: SessionId | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Task]:
        """Running, then pending in the order of claiming, then waiting, then the newest ended."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(
                _SQL["list"],
                state=state and str(state),
                priority=priority and str(priority),
                session_id=session_id,
                limit=limit,
                offset=offset,
            )
            return await with_predecessors(conn, found)

    async def count_by_state(self) -> dict[TaskState, int]:
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["count_by_state"])
            return {TaskState(row["state"]): row["tasks"] for row in found}

    async def update(self, task_id: TaskId, changes: TaskChanges) -> Task:
        """Change a pending task. Raises NotFound, Refused, CycleRefused (which names the cycle)."""
        async with self._db.transaction() as conn:
            task = await _get(conn, task_id)
            if changes.after is not None:
                await self._replace_predecessors(conn, task, changes.after)
            changed = await conn.fetch(
                _SQL["update"],
                id=task_id,
                prompt=changes.prompt or task.prompt,
                title=changes.title or task.title,
                priority=str(changes.priority or task.priority),
                not_before=changes.not_before or task.not_before,
                has_predecessors=bool(task.after if changes.after is None else changes.after),
                now=self._clock.now(),
            )
            if not changed:
                raise Refused(
                    f"task {task_id} is {task.state}; only a pending task can be changed",
                    hint="Cancel it, or enqueue a new task that comes after it.",
                )
            conn.announce()
            return await _get(conn, task_id)

    async def delete(self, task_id: TaskId) -> None:
        """Take a task out of the queue; its session's journal stays. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            task = await _get(conn, task_id)
            successors = await conn.fetch(_SQL["unfinished_successors"], id=task_id)
            if successors:
                names = ", ".join(row["id"] for row in successors)
                raise Refused(
                    f"task {task_id} is awaited by {names}", hint="Delete or cancel those first."
                )
            if not await conn.fetch(_SQL["delete"], id=task_id):
                raise Refused(
                    f"task {task_id} is {task.state}", hint=f"First: agentd task cancel {task_id}"
                )
            await conn.execute(_SQL["remove_predecessors"], task_id=task_id)

    async def cancel(self, task_id: TaskId, *, reason: str) -> Task:
        """Cancel a task that nobody runs at once; ask the daemon of a running one to end its run.

        Raises NotFound, and Refused when the task has ended already.
        """
        async with self._db.transaction() as conn:
            now = self._clock.now()
            if await conn.fetch(_SQL["cancel"], id=task_id, reason=reason, now=now):
                await fail_successors(conn, [task_id], "was cancelled", now)
            elif not await conn.fetch(_SQL["request_cancel"], id=task_id, now=now):
                task = await _get(conn, task_id)
                raise Refused(f"task {task_id} is {task.state} already")
            conn.announce()
            return await _get(conn, task_id)

    async def retry(self, task_id: TaskId) -> Task:
        """Let a failed or cancelled task go on in its session. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            task = await _get(conn, task_id)
            await _check_predecessors(conn, task.after, after_any=task.after_any)
            return await TaskStore(conn, self._clock)._wake(  # noqa: SLF001 - itself
                task_id, "retry", "only a failed or cancelled task can be retried"
            )

    async def resume(self, task_id: TaskId, message: str | None = None) -> Task:
        """Wake a waiting task, with something to say to it. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            task = await TaskStore(conn, self._clock)._wake(  # noqa: SLF001 - itself
                task_id, "resume", "only a waiting task can be resumed"
            )
            if message:
                await SessionStore(conn, self._clock).leave(task.session_id, message, "person")
            return task

    async def _wake(self, task_id: TaskId, how: str, rule: str) -> Task:
        async with self._db.transaction() as conn:
            task = await _get(conn, task_id)
            if not await conn.fetch(_SQL[how], id=task_id, now=self._clock.now()):
                raise Refused(f"task {task_id} is {task.state}; {rule}")
            conn.announce()
            return await _get(conn, task_id)

    async def _replace_predecessors(
        self, conn: Connection, task: Task, after: Sequence[TaskId]
    ) -> None:
        await _check_predecessors(conn, after, after_any=task.after_any)
        await conn.execute(_SQL["remove_predecessors"], task_id=task.id)
        await _set_predecessors(conn, task.id, dict.fromkeys(after))
        await refuse_cycles(conn, task.id)


async def refuse_cycles(conn: Connection, task_id: TaskId) -> None:
    """Raises CycleRefused when `task_id` would wait for itself in the end."""
    edges = [(row["task_id"], row["after_id"]) for row in await conn.fetch(_SQL["edges"])]
    cycle = find_cycle(edges, task_id)
    if cycle:
        raise CycleRefused([TaskId(each) for each in cycle])


async def with_predecessors(conn: Connection, found: Sequence[rows.Row]) -> list[Task]:
    """Rows of `tasks` as tasks."""
    after: dict[str, list[str]] = {row["id"]: [] for row in found}
    ids = [row["id"] for row in found if row["has_predecessors"]]
    if ids:
        for edge in await conn.fetch(_SQL["predecessors"], ids=ids):
            after[edge["task_id"]].append(edge["after_id"])
    return [rows.task(row, after[row["id"]]) for row in found]


async def _get(conn: Connection, task_id: TaskId) -> Task:
    row = await conn.fetch_one(_SQL["get"], id=task_id)
    if row is None:
        raise NotFound("task", task_id, hint="`agentd task list` shows what there is.")
    return (await with_predecessors(conn, [row]))[0]


async def _set_predecessors(conn: Connection, task_id: TaskId, after: Iterable[TaskId]) -> None:
    await conn.execute_many(
        _SQL["add_predecessor"],
        [{"task_id": task_id, "after_id": each} for each in after],
    )


async def _check_predecessors(
    conn: Connection, after: Sequence[TaskId], *, after_any: bool
) -> None:
    if not after:
        return
    found = await conn.fetch(_SQL["states"], ids=list(after))
    states = {row["id"]: row["state"] for row in found}
    for each in after:
        if each not in states:
            raise NotFound("task", each, hint="`after` names tasks that are in the queue.")
        if states[each] in ("failed", "cancelled") and not after_any:
            raise Refused(
                f"task {each} has {states[each]}, so nothing that comes after it can run",
                hint=f"Retry it (agentd task retry {each}), or enqueue with --after-any.",
            )
