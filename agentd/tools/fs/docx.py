"""Word documents as Markdown: their headings, lists, tables and links survive."""

import io
import zipfile
from typing import Any, BinaryIO

from agentd.domain.errors import ToolError

_MOST_BYTES = 100 * 1024 * 1024  # unpacked; a small file can claim any size


def docx_text(file: BinaryIO, path: str) -> BinaryIO:
    """The document's text in UTF-8. Raises ToolError."""
    try:
        import html_to_markdown  # noqa: PLC0415 - an extra
        import mammoth  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ToolError(
            "unavailable",
            f"{path} is a Word document, and the extra that reads them is not installed",
            next_action_hint="The owner of this agentd can install it: pip install 'agentd[docs]'",
        ) from error
    document = io.BytesIO(file.read(_MOST_BYTES))
    try:
        with zipfile.ZipFile(document) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
        if unpacked > _MOST_BYTES:
            raise ToolError("too_large", f"{path} unpacks to {unpacked} bytes")
        typed: Any = mammoth  # it has no types
        no_images = typed.images.img_element(_no_image)
        html: str = typed.convert_to_html(document, convert_image=no_images).value
        markdown = html_to_markdown.convert(html).content or ""
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ToolError("binary_file", f"{path} is no Word document: {error}") from error
    return io.BytesIO(markdown.encode())


def _no_image(_image: object) -> dict[str, str]:
    return {"src": ""}
