"""Lets people write the start or the end of an id."""

from agentd.domain.errors import NotFound, Refused
from agentd.store.connection import Connection
from agentd.store.queries import Query

_SHORTEST = 4


async def one_of(conn: Connection, query: Query, what: str, text: str) -> str:
    """The one id that is, starts with or ends with `text`. Raises NotFound, Refused."""
    found = await conn.fetch(query, text=text, in_part=len(text) >= _SHORTEST)
    ids = [row["id"] for row in found]
    if text in ids:
        return text
    if not ids:
        least = "" if len(text) >= _SHORTEST else f" Write {_SHORTEST} characters at least."
        raise NotFound(what, text, hint=f"`agentd {what} list` shows what there is.{least}")
    if len(ids) > 1:
        raise Refused(
            f"{text!r} fits several {what}s: {', '.join(ids)}", hint="Write more of the id."
        )
    return str(ids[0])
