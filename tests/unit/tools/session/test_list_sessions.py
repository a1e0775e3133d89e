"""list_sessions."""

from agentd.domain.task import NewTask
from agentd.store.sessions import SessionStore
from agentd.store.tasks import TaskStore
from agentd.tools.session.list_sessions import list_sessions


async def test_sessions_are_listed(tasks: TaskStore, sessions: SessionStore) -> None:
    made = (await tasks.enqueue(NewTask(prompt="Do it.", enqueued_by="test"))).task
    assert [each.id for each in await list_sessions(sessions)] == [made.session_id]
    assert await list_sessions(sessions, offset=1) == []
