"""read_session."""

from pathlib import Path

from agentd.domain.clock import SystemClock
from agentd.store.events import EventStore
from agentd.tools.session.read_session import read_session
from tests.desk import desk
from tests.messages_turns import DONE


async def test_the_newest_events_come_in_order(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE) as office:
        task = await office.work()
        events = EventStore(office.store, SystemClock())
        whole = await read_session(office.sessions, events, task.session_id)
        last = await read_session(office.sessions, events, task.session_id[-8:], limit=1)
    assert (whole[0].kind, whole[0].body["text"]) == ("user", "Do it.")
    assert last == whole[-1:]
