"""Conversations, and the messages that wait to be written into their journals."""

from collections.abc import Sequence

from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import NotFound
from agentd.domain.ids import SessionId, new_id
from agentd.domain.session import Session
from agentd.store import rows
from agentd.store.connection import Transactor
from agentd.store.prefixes import one_of
from agentd.store.queries import load

_SQL = load("sessions")
_TASKS = load("tasks")


class SessionStore(Capability):
    """Works on the store (each call its own transaction) and inside an open transaction alike."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def open(self, session_id: SessionId, *, title: str | None, is_new: bool) -> None:
        """Make sure that there is such a session."""
        async with self._db.transaction() as conn:
            query = _SQL["add"] if is_new else _SQL["ensure"]
            await conn.execute(query, id=session_id, title=title, now=self._clock.now())

    async def find(self, text: str) -> SessionId:
        """The session whose id is, starts with or ends with `text`. Raises NotFound, Refused."""
        async with self._db.transaction() as conn:
            return SessionId(await one_of(conn, _SQL["ids_like"], "session", text))

    async def list(self, *, limit: int = 20, offset: int = 0) -> Sequence[Session]:
        """Newest activity first."""
        async with self._db.transaction() as conn:
            found = await conn.fetch(_SQL["list"], limit=limit, offset=offset)
            return [rows.session(row) for row in found]

    async def send(self, session_id: SessionId, text: str, sender: str) -> None:
        """Say something to a session; a task that waits in it wakes. Raises NotFound."""
        async with self._db.transaction() as conn:
            if not await conn.fetch(_SQL["exists"], id=session_id):
                raise NotFound("session", session_id)
            await SessionStore(conn, self._clock).leave(session_id, text, sender)
            await conn.execute(_TASKS["wake_session"], session_id=session_id, now=self._clock.now())
            conn.announce()

    async def leave(self, session_id: SessionId, text: str, sender: str) -> None:
        """Put a message where the session's next run, or the one under way, will find it."""
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["add_message"],
                id=new_id(),
                session_id=session_id,
                sender=sender,
                body=text,
                now=self._clock.now(),
            )
            conn.announce()
