"""HTML as Markdown: what a reader of the page sees, with its links absolute.

A library in Rust that is given a hostile page can hold the interpreter's lock for seconds, eat the
memory or abort: it runs in a confined process, never in the daemon's.
"""

import html as entities
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import anyio

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands
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


async def readable(html: str, url: str, commands: Commands) -> Readable:
    """Never raises. A page that is no proper HTML comes as plain text."""
    found = _TITLE.search(html[:_LOOK_CHARS])
    title = " ".join(entities.unescape(found[1]).split()) if found else ""
    try:
        done = await commands.run(_command(html, url))
    except ToolError:  # there is no workspace to start in, or the machine has no more processes
        return Readable(title, await _plainly(html))
    markdown = done.output if done.exit_code == 0 else ""
    return Readable(title, markdown or await _plainly(html))


async def _plainly(html: str) -> str:
    return await anyio.to_thread.run_sync(html_to_text, html)


def _command(html: str, url: str) -> Command:
    spec = find_spec("html_to_markdown")
    packages = Path(spec.origin).parents[1] if spec and spec.origin else Path(sys.prefix)
    return Command(
        argv=[sys.executable, "-I", str(_SCRIPT), str(packages), url, str(_MOST_CHARS)],
        timeout_s=_TIMEOUT_S,
        stdin=html.encode(errors="replace"),
        programs=[*{Path(sys.base_prefix), Path(sys.prefix), packages, _SCRIPT}],
        read_only=True,
        most_chars=2 * _MOST_CHARS,
        trusted=True,
    )
