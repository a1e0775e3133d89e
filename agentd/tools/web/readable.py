"""HTML as Markdown: what a reader of the page sees, with its links absolute."""

import html as entities
import re
from dataclasses import dataclass
from pathlib import Path

import anyio

from agentd.sandbox.apart import parse_apart
from agentd.tools.web.html_to_text import html_to_text

_SCRIPT = Path(__file__).with_name("to_markdown.py")
_TIMEOUT_S = 8.0
_MOST_CHARS = 4_000_000
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_LOOK_CHARS = 65_536


@dataclass(frozen=True, slots=True)
class Readable:
    """A page as text. `title`: empty when it has none."""

    title: str
    text: str


async def readable(html: str, url: str) -> Readable:
    """Never raises. A page that is no proper HTML comes as plain text."""
    found = _TITLE.search(html[:_LOOK_CHARS])
    title = " ".join(entities.unescape(found[1]).split()) if found else ""
    made = await parse_apart(
        _SCRIPT,
        html.encode(errors="replace"),
        url,
        str(_MOST_CHARS),
        timeout_s=_TIMEOUT_S,
        most_bytes=4 * _MOST_CHARS,
    )
    if made:
        return Readable(title, made.decode())
    return Readable(title, await anyio.to_thread.run_sync(html_to_text, html))
