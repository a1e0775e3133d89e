"""read: PDF files (pdf.py), Word documents (docx.py) and pictures (pictures.py)."""

import base64
import io
import os
import re
import struct
import sys
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import docx
import pypdf
import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.definition import tool_of
from agentd.toolkit.result import render
from agentd.tools.fs.read import Page, read
from tests.confined import needs_sandbox


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page; by hand, for nothing else here writes text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    made, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{each}\nendobj\n".encode()
    start = len(made)
    made += f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    trailer = f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return made + trailer.encode()


def encrypted(data: bytes, password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(password, algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


async def shown(folder: Path, path: str, **more: Any) -> Page:
    commands = Commands([Root(folder)])
    call = partial(read, Workspace(folder), path, commands=commands, **more)
    return await anyio.to_thread.run_sync(call)


async def why(folder: Path, path: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await shown(folder, path)
    return caught.value


async def test_a_pdf_is_shown_as_its_text_in_pages(folder: Path) -> None:
    (folder / "report").write_bytes(pdf("First page", "Second page"))
    page = await shown(folder, "report", numbered=False)
    assert page.content == "[page 1]\nFirst page\n\n[page 2]\nSecond page"
    page = await shown(folder, "report", offset=4, limit=1)
    assert page.content == "4\tSecond page"


async def test_a_pdf_that_gives_no_text_says_why(folder: Path) -> None:
    (folder / "scan.pdf").write_bytes(pdf("", ""))
    (folder / "closed.pdf").write_bytes(encrypted(pdf("secret"), "password"))
    (folder / "open.pdf").write_bytes(encrypted(pdf("for all"), ""))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    assert (await why(folder, "scan.pdf")).message.endswith("they are images, perhaps scanned")
    assert (await why(folder, "closed.pdf")).error_type == "encrypted"
    assert (await why(folder, "broken.pdf")).error_type == "binary_file"
    assert "for all" in (await shown(folder, "open.pdf")).content


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(width: int = 2, height: int = 1) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" + b"\xff\0\0" * 2))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"")


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xc0\x00\x11\x08\x00\x03\x00\x04\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xd9"
)
GIF = b"GIF89a" + struct.pack("<HH", 5, 6) + b"\0\0\0;"
WEBP = b"RIFF" + struct.pack("<I", 26) + b"WEBPVP8X\x0a\0\0\0" + b"\0\0\0\0\x06\0\0\x07\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "media_type", "measures"),
    [
        (png(), "image/png", "2 x 1"),
        (JPEG, "image/jpeg", "4 x 3"),
        (GIF, "image/gif", "5 x 6"),
        (WEBP, "image/webp", "7 x 8"),
    ],
)
def test_a_picture_is_shown_as_a_picture(
    data: bytes, media_type: str, measures: str, folder: Path, workspace: Workspace
) -> None:
    (folder / "named.txt").write_bytes(data)
    page = read(workspace, "named.txt")
    told = f"named.txt is a picture: {media_type}, {measures} pixels, {len(data)} bytes."
    tool = tool_of(read)
    assert tool is not None
    result = render(tool, page)
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    assert result.content == [
        {"type": "text", "text": told},
        {"type": "image", "source": source},
    ]
    assert result.data["content"] == told
    assert source["data"] not in str(result.data)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png()[:-20], "binary_file"),
        (png().replace(b"IDAT", b"IDAX"), "binary_file"),
        (png(width=9000), "too_large"),
        (png(width=0), "too_large"),
        (JPEG[:-2], "binary_file"),
        (b"\xff\xd8\xff", "binary_file"),
        (GIF[:-1], "binary_file"),
        (WEBP[:20], "binary_file"),
        (png()[:-12] + chunk(b"teXt", b"x" * 4_000_000) + chunk(b"IEND", b""), "too_large"),
    ],
)
def test_a_picture_that_a_model_would_refuse_is_an_error(
    data: bytes, kind: str, folder: Path, workspace: Workspace
) -> None:
    (folder / "picture").write_bytes(data)
    with pytest.raises(ToolError) as caught:
        read(workspace, "picture")
    assert caught.value.error_type == kind


def test_what_is_no_file_or_closed_says_so(folder: Path, workspace: Workspace) -> None:
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0)
    told: dict[str, str] = {}
    for name in ("folder", "pipe", "missing", "closed"):
        try:
            read(workspace, name)
        except ToolError as error:
            told[name] = f"{error.error_type}: {error.message}"
    assert told["folder"] == "is_a_folder: folder is a folder"
    assert told["pipe"] == "not_a_file: pipe is neither a file nor a folder (a pipe, a device)"
    assert told["missing"] == "not_found: missing does not exist"
    if os.geteuid() != 0:  # to root nothing is closed
        assert told["closed"] == "permission_denied: closed: Permission denied"


@pytest.mark.requirement("S2-10")
def test_a_page_far_down_is_reached_in_constant_memory(folder: Path, workspace: Workspace) -> None:
    with (folder / "large.txt").open("wb") as file:
        for number in range(2_000):
            file.write(f"{number}\n".encode() + b"x" * 100_000 + b"\n")
    page = read(workspace, "large.txt", offset=3998, limit=1)
    assert page.content.startswith("3998\t1999\n[100001 bytes follow.")
    with pytest.raises(ToolError, match="has no line 4000"):
        read(workspace, "large.txt", offset=4000)


def _document(path: Path) -> None:
    made = docx.Document()
    made.add_heading("Plan", 1)
    made.add_paragraph("First words.")
    made.add_paragraph("milk", style="List Bullet")
    table = made.add_table(2, 2)
    for row, texts in enumerate((("name", "sum"), ("Ann", "3"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    made.save(str(path))


async def why_not(folder: Path, path: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await shown(folder, path)
    return caught.value


@needs_sandbox
@pytest.mark.requirement("S4-04")
async def test_a_word_document_is_read_with_its_headings_lists_and_tables(tmp_path: Path) -> None:
    _document(tmp_path / "plan.DOCX")
    text = (await shown(tmp_path, "plan.DOCX", numbered=False)).content
    assert "# Plan" in text
    assert "First words." in text
    assert re.search(r"[-*] milk", text)
    assert re.search(r"\| *Ann *\| *3 *\|", text)


@needs_sandbox
async def test_what_only_claims_to_be_a_word_document_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_text("not zipped")
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as packed:
        packed.writestr("other.xml", "<x/>")
    for name in ("a.docx", "b.docx"):
        assert (await why_not(tmp_path, name)).error_type == "binary_file"


@needs_sandbox
async def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"\0" * (101 * 1024 * 1024))
    assert (await why_not(tmp_path, "bomb.docx")).error_type == "too_large"


@needs_sandbox
async def test_a_nested_word_document_breaks_its_own_process_only(tmp_path: Path) -> None:
    _document(tmp_path / "deep.docx")
    with zipfile.ZipFile(tmp_path / "deep.docx") as made:
        parts = {name: made.read(name) for name in made.namelist()}
    table = b"<w:tbl><w:tr><w:tc>", b"</w:tc></w:tr></w:tbl>"
    body = parts["word/document.xml"].partition(b"<w:body>")
    parts["word/document.xml"] = b"".join(
        [*body[:2], table[0] * 20_000, table[1] * 20_000, b"</w:body></w:document>"]
    )
    with zipfile.ZipFile(tmp_path / "deep.docx", "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    assert (await why_not(tmp_path, "deep.docx")).error_type == "binary_file"


async def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _document(tmp_path / "plan.docx")
    monkeypatch.setitem(sys.modules, "mammoth", None)
    error = await why_not(tmp_path, "plan.docx")
    assert error.error_type == "unavailable"
    assert "agentd[docs]" in (error.next_action_hint or "")
