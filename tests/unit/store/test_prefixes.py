"""People write the start or the end of an id."""

import pytest

from agentd.domain.errors import NotFound, Refused
from agentd.domain.task import NewTask
from agentd.store.prefixes import one_of
from agentd.store.queries import load
from agentd.store.store import Store
from agentd.store.tasks import TaskStore

_IDS_LIKE = load("tasks")["ids_like"]


async def find(store: Store, text: str) -> str:
    async with store.transaction() as conn:
        return await one_of(conn, _IDS_LIKE, "task", text)


async def test_the_whole_id_its_start_or_its_end_will_do(store: Store, tasks: TaskStore) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    for text in (task.id, task.id[:8], task.id[-6:]):
        assert await find(store, text) == task.id


async def test_what_fits_several_is_refused_and_names_them(store: Store, tasks: TaskStore) -> None:
    both = [(await tasks.enqueue(NewTask(prompt="x"))).task.id for _ in range(2)]
    with pytest.raises(Refused, match=both[1]):
        await find(store, both[0][:6])  # one moment: ids begin with their time
    assert await find(store, both[0]) == both[0]


@pytest.mark.parametrize("text", ["", "%", "____", "%%%%", "abc", "'; DROP TABLE tasks"])
async def test_anything_else_is_not_found(text: str, store: Store, tasks: TaskStore) -> None:
    await tasks.enqueue(NewTask(prompt="x"))
    with pytest.raises(NotFound):
        await find(store, text)
