"""PDF files as text, page by page."""

import io
from typing import Any, BinaryIO

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.tools.fs.documents import TEXT_MOST_CHARS, read_confined

_MOST_BYTES = 50 * 1024 * 1024
_PAGES_MOST = 1000

_SCRIPT = f"""
import pypdf
try:
    document = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    if document.is_encrypted and not document.decrypt(""):
        say(error="encrypted")
    pages, texts, chars = len(document.pages), [], 0
    for page in document.pages[:{_PAGES_MOST}]:
        texts.append(page.extract_text())
        chars += len(texts[-1])
        if chars > {TEXT_MOST_CHARS}:
            break
    say(pages=pages, texts=texts)
except Exception as error:
    fail(error)
"""


def is_pdf(start: bytes) -> bool:
    return start.startswith(b"%PDF-")


def pdf_text(file: BinaryIO, path: str, commands: Commands | None) -> BinaryIO:
    """The document's text in UTF-8. Raises ToolError. Called in a worker thread of the loop."""
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ToolError("too_large", f"{path} is a PDF of more than {_MOST_BYTES} bytes")
    facts = read_confined(_SCRIPT, data, path, commands, module="pypdf", kind="a PDF")
    return io.BytesIO(_text(facts, path).encode(errors="replace"))


def _text(facts: dict[str, Any], path: str) -> str:
    match facts.get("error"):
        case "encrypted":
            raise ToolError("encrypted", f"{path} is a PDF that needs a password")
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
