"""Results that are too long for one look. Written with their event (events.py), read in pages."""

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.event import LargeResult
from agentd.store.connection import Connection, Transactor
from agentd.store.queries import load

_SQL = load("large_results")


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page of a result. `content`: empty when the result ends before it."""

    content: str
    page: int
    pages: int
    left_chars: int
    chars: int
    tool: str
    outside: bool


class LargeResultStore(Capability):
    def __init__(self, db: Transactor) -> None:
        self._db = db

    async def page(self, id_: str, page: int) -> StoredPage | None:
        """Page `page`, the first is 1; None: there is no such result."""
        async with self._db.transaction() as conn:
            row = await conn.fetch_one(_SQL["page"], id=id_, page=page)
        if row is None:
            return None
        chars, size = int(row["chars"]), int(row["page_chars"])
        return StoredPage(
            content=row["content"],
            page=page,
            pages=-(-chars // size),
            left_chars=max(0, chars - page * size),
            chars=chars,
            tool=row["tool"],
            outside=row["outside"],
        )


async def add_large(conn: Connection, large: LargeResult, now: datetime) -> None:
    """Write one in the transaction of its event. It holds no secrets: the result layer made it."""
    row = {
        "id": large.id,
        "session_id": large.session_id,
        "task_id": large.task_id,
        "call_id": large.call_id,
        "tool": large.tool,
        "outside": large.outside,
        "content": large.content,
        "chars": len(large.content),
        "page_chars": large.page_chars,
        "now": now,
    }
    await conn.execute_many(_SQL["add"], [row], is_clean=True)
