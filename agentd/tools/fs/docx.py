"""Word documents as Markdown: their headings, lists, tables and links survive."""

import io
from typing import BinaryIO

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.tools.fs.documents import TEXT_MOST_CHARS, read_confined

_MOST_BYTES = 50 * 1024 * 1024
_UNPACKED_MOST_BYTES = 100 * 1024 * 1024  # a small file can claim any size

_SCRIPT = f"""
import zipfile
import html_to_markdown, mammoth
try:
    document = io.BytesIO(sys.stdin.buffer.read())
    with zipfile.ZipFile(document) as parts:
        unpacked = sum(part.file_size for part in parts.infolist())
    if unpacked > {_UNPACKED_MOST_BYTES}:
        say(error="large", bytes=unpacked)
    no_images = mammoth.images.img_element(lambda image: {{"src": ""}})
    html = mammoth.convert_to_html(document, convert_image=no_images).value
    say(text=(html_to_markdown.convert(html).content or "")[:{TEXT_MOST_CHARS}])
except Exception as error:
    fail(error)
"""


def docx_text(file: BinaryIO, path: str, commands: Commands | None) -> BinaryIO:
    """The document's text in UTF-8. Raises ToolError. Called in a worker thread of the loop."""
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ToolError("too_large", f"{path} is a Word document of more than {_MOST_BYTES} bytes")
    kind = "a Word document"
    facts = read_confined(_SCRIPT, data, path, commands, module="mammoth", kind=kind)
    if facts.get("error") == "large":
        raise ToolError("too_large", f"{path} unpacks to {facts['bytes']} bytes")
    return io.BytesIO(str(facts["text"]).encode(errors="replace"))
