"""PDF files as text, page by page.

A PDF can be made so that reading it takes for ever, or all memory. So it is read by a confined
process that has a time limit and sees nothing but the file.
"""

import io
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import anyio.from_thread

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Command, Commands

_MOST_BYTES = 50 * 1024 * 1024
_PAGES_MOST = 1000
_TEXT_MOST_CHARS = 10_000_000
_READ_S = 30.0
_MARK = "\x1e"  # what comes before it is none of ours

_SCRIPT = f"""
import io, json, logging, sys
logging.disable()
def say(**facts):
    print({_MARK!r} + json.dumps(facts))
    sys.exit()
sys.path.append(sys.argv[1])
import pypdf
try:
    document = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    if document.is_encrypted and not document.decrypt(""):
        say(error="encrypted")
    pages, texts, chars = len(document.pages), [], 0
    for page in document.pages[:{_PAGES_MOST}]:
        texts.append(page.extract_text())
        chars += len(texts[-1])
        if chars > {_TEXT_MOST_CHARS}:
            break
    say(pages=pages, texts=texts)
except Exception as error:
    say(error="broken", why=f"{{type(error).__name__}}: {{error}}"[:300])
"""


def is_pdf(start: bytes) -> bool:
    return start.startswith(b"%PDF-")


def pdf_text(file: BinaryIO, path: str, commands: Commands | None) -> BinaryIO:
    """The document's text in UTF-8. Raises ToolError. Called in a worker thread of the loop."""
    if commands is None:
        raise ToolError("unavailable", f"{path} is a PDF, and nothing can read those here")
    spec = find_spec("pypdf")
    if spec is None or spec.origin is None:
        raise ToolError(
            "unavailable",
            f"{path} is a PDF, and the extra that reads them is not installed",
            next_action_hint="The owner of this agentd can install it: pip install 'agentd[docs]'",
        )
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ToolError("too_large", f"{path} is a PDF of more than {_MOST_BYTES} bytes")
    finished = anyio.from_thread.run(commands.run, _command(data, Path(spec.origin).parents[1]))
    if finished.timed_out:
        raise ToolError("timeout", f"{path} could not be read within {_READ_S:.0f} s")
    said = finished.output.rpartition(_MARK)[2]
    try:
        facts: dict[str, Any] = json.loads(said)
    except ValueError:
        ended = f"exit code {finished.exit_code}"
        raise ToolError("binary_file", f"{path} can not be read as a PDF ({ended})") from None
    return io.BytesIO(_text(facts, path).encode())


def _command(data: bytes, packages: Path) -> Command:
    return Command(
        argv=[sys.executable, "-I", "-c", _SCRIPT, str(packages)],
        timeout_s=_READ_S,
        stdin=data,
        programs=[*{Path(sys.base_prefix), Path(sys.prefix), packages}],
        read_only=True,
        most_chars=2 * _TEXT_MOST_CHARS,
    )


def _text(facts: dict[str, Any], path: str) -> str:
    match facts.get("error"):
        case "encrypted":
            raise ToolError("encrypted", f"{path} is a PDF that needs a password")
        case "broken":
            raise ToolError("binary_file", f"{path} can not be read as a PDF: {facts['why']}")
        case _:
            pages, texts = int(facts["pages"]), list[str](facts["texts"])
    if not any(text.strip() for text in texts):
        raise ToolError(
            "no_text",
            f"{path} is a PDF of {pages} pages without text: they are images, perhaps scanned",
        )
    shown = [f"[page {number}]\n{text.strip()}" for number, text in enumerate(texts, 1)]
    if len(texts) < pages:
        shown.append(f"[{pages - len(texts)} more pages are not shown]")
    return "\n\n".join(shown) + "\n"
