"""A page of the web as text, through real HTTP on loopback."""

import asyncio
import importlib
import json
import os
import re
import sys
from pathlib import Path

import anyio
import pytest

from agentd.domain.errors import ToolError
from agentd.home import make_home
from agentd.sandbox.commands import Commands
from agentd.sandbox.http import Http
from agentd.sandbox.roots import Root
from agentd.toolkit.definition import Effect, tool_of
from agentd.toolkit.discover import discover
from agentd.tools.web.web_fetch import Fetched, web_fetch
from tests.loopback import head
from tests.site import Site, answer, egress_for, redirect

module = importlib.import_module("agentd.tools.web.web_fetch")

PAGE = """<!DOCTYPE html><html><head><title>A &amp; B</title><base href="/base/">
<style>p{color:red}</style><script>steal()</script></head><body>
<nav><a href="/n">Navigation</a></nav>
<h1>Head</h1><p>Hello <a href="rel?a=1&amp;b=2">link</a> <b>bold</b></p>
<ul><li>one</li><li>two</li></ul>
<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>
<p hidden>hidden one</p><p style="display:none">hidden two</p><p aria-hidden="true">hidden three</p>
<template>hidden four</template><noscript>hidden five</noscript>
<script>steal()</script></body></html>"""


COMMANDS = Commands([Root(Path(__file__).parent, writable=False)])


async def fetched(page: bytes, path: str = "/") -> Fetched:
    async with Site({path: page}) as site:
        return await web_fetch(Http(egress_for(site)), COMMANDS, site.url(path))


async def error_of(page: bytes) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await fetched(page)
    return caught.value


@pytest.mark.requirement("S3-09")
async def test_html_becomes_markdown_of_what_a_reader_sees() -> None:
    async with Site({"/a/": redirect("/page"), "/page": answer(200, PAGE.encode())}) as site:
        site.pages["/page"] = answer(200, PAGE.encode(), content_type="text/html; charset=utf-8")
        got = await web_fetch(Http(egress_for(site)), COMMANDS, site.url("/a/"))
        url = site.url("/page")
        link = site.url("/base/rel?a=1&b=2")
    first, title, _, *text = got.content.splitlines()
    assert first == f"{url} (200 text/html, {len(PAGE)} bytes)"
    assert title == "Title: A & B"
    assert "# Head" in text
    assert f"Hello [link]({link}) **bold**" in text
    assert "- one" in text
    assert "| 1 | 2 |" in text
    for unseen in ("steal", "color", "hidden", "Navigation", "<"):
        assert unseen not in "\n".join(text)
    assert (got.url, got.status, got.content_type, got.title) == (url, 200, "text/html", "A & B")
    assert (got.fetched_bytes, got.cut) == (len(PAGE), False)


@pytest.mark.requirement("S3-09")
def test_ten_kilobytes_are_shown_at_once() -> None:
    assert Fetched.inline_chars == 10_240


@pytest.mark.requirement("S3-09")
async def test_fifteen_seconds_is_the_limit_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, {"content-type": "text/plain"}))
        while not writer.is_closing():
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    assert module._TIMEOUT_S == 15
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.1)
    async with Site({"/": drip}) as site:
        with pytest.raises(ToolError) as caught:
            await web_fetch(Http(egress_for(site)), COMMANDS, site.url("/"))
    assert caught.value.error_type == "timeout"


@pytest.mark.requirement("S3-10")
@pytest.mark.parametrize("kind", ["application/json", "application/ld+json; charset=utf-8"])
async def test_json_comes_as_it_is(kind: str) -> None:
    text = json.dumps({"b": ["<p>", 1], "a": None, "c": "é"}, ensure_ascii=False, indent=3)
    got = await fetched(answer(200, text.encode(), content_type=kind))
    assert got.content.partition("\n\n")[2] == text
    assert Fetched.inline_chars == 10_240


@pytest.mark.requirement("S3-08")
def test_it_is_there_for_everybody_and_has_a_slash_command() -> None:
    found = tool_of(web_fetch)
    assert found is not None
    assert found.slash is not None
    assert (found.group, found.effect, found.outside) == ("web", Effect.READ, True)
    assert found.available is None
    assert "web_fetch" in {each.name for each in discover().tools}


@pytest.mark.parametrize("kind", ["text/plain", "text/csv", "application/xml", "image/svg+xml", ""])
async def test_other_text_comes_as_it_is(kind: str) -> None:
    got = await fetched(answer(200, b"a <b>\n  c", content_type=kind))
    assert got.content.partition("\n\n")[2] == "a <b>\n  c"


async def test_a_page_without_a_type_is_recognised() -> None:
    got = await fetched(answer(200, b"<!doctype html><p>Hello"))
    assert got.content.partition("\n\n")[2] == "Hello"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("application/octet-stream", b"text, by the way"),
        ("application/pdf", b"%PDF-1.7"),
        ("text/html", b"<p>\0\0\0</p>"),
        ("", b"\0\1\2"),
    ],
)
async def test_what_is_no_text_is_refused_in_words(kind: str, body: bytes) -> None:
    error = await error_of(answer(200, body, content_type=kind))
    assert error.error_type == "unsupported_type"
    assert f"({len(body)} bytes)" in error.message


@pytest.mark.parametrize(
    ("kind", "text", "charset"),
    [
        ("text/plain; charset=windows-1251", "Привет", "cp1251"),
        ('text/plain; charset="UTF-8"', "Grüße", "utf-8"),
        ("text/plain; charset=iso-8859-1", "€ “x”", "cp1252"),
        ("text/plain; charset=utf-8", "\ufeffGrüße", "utf-16-le"),
        ("text/plain; charset=latin1", "\ufeffGrüße", "utf-8"),
        ("text/plain; charset=utf-16le", "Grüße", "utf-16-le"),
        ("text/plain", "Grüße €", "utf-8"),
        ("text/html", '<meta charset="shift_jis"><p>日本語', "shift_jis"),
        ("text/html", "<meta http-equiv=x content='text/html; charset=koi8-r'><p>Мир", "koi8-r"),
        ("text/html", '<meta charset="utf-16"><p>é', "utf-8"),
        ("text/xml", "<?xml version='1.0' encoding='iso-8859-2'?><a>ł</a>", "iso8859-2"),
        ("text/plain; charset=rot13", "hello", "utf-8"),
        ("text/plain; charset=unicode_escape", "\\x41", "utf-8"),
        ("text/plain; charset=idna", "xn--a", "utf-8"),
        ("text/plain; charset=nonsense", "Grüße", "utf-8"),
        ("text/plain", "Москва — столица России. Иван сказал: «Погода хорошая».", "cp1251"),
        ("text/plain", "L'été dernier, près de l'hôtel où ma mère était née.", "cp1252"),
        (
            "text/plain",
            "東京は日本の首都であり、最大の都市です。カタカナも含みます。",
            "euc_jis_2004",
        ),
    ],
)
async def test_characters_are_read_as_they_were_meant(kind: str, text: str, charset: str) -> None:
    got = await fetched(answer(200, text.encode(charset), content_type=kind))
    assert got.charset == charset
    assert got.content.partition("\n\n")[2] in text


async def test_wrong_bytes_do_not_end_it() -> None:
    got = await fetched(answer(200, b"a\xffb", content_type="text/plain; charset=utf-8"))
    assert got.content.endswith("a\ufffdb")


async def test_control_characters_and_invisible_ones_are_taken_out() -> None:
    text = "a\x1b]0;title\x07b\x9bc\u0000" + "".join(chr(0xE0000 + ord(each)) for each in "obey")
    got = await fetched(answer(200, text.replace("\0", "").encode(), content_type="text/plain"))
    assert got.content.endswith("a]0;titlebc")


async def test_a_long_text_is_cut_and_says_so() -> None:
    got = await fetched(answer(200, b"x" * 3_000_000, content_type="text/plain"))
    assert got.cut
    assert got.fetched_bytes == 2 * 1024 * 1024
    assert "only the first 2097152 bytes of it" in got.content.splitlines()[0]


@pytest.mark.parametrize("body", [b"", b"  ", b"<html></html>"])
async def test_an_empty_page_says_so(body: bytes) -> None:
    got = await fetched(answer(200, body, content_type="text/html"))
    assert got.content.endswith("(it has no text)")


async def test_a_missing_page_is_told_with_what_the_server_says() -> None:
    error = await error_of(answer(404, b"<p>gone fishing"))
    assert (error.error_type, "gone fishing" in error.message) == ("not_found", True)


@pytest.mark.parametrize("piece", ["<div>", "<ul><li>", "<b><i>", "<table><tr><td>", "<!--", "<"])
async def test_a_hostile_page_is_only_a_bad_page(piece: str) -> None:
    body = (piece * 20_000 + " needle").encode()
    got = await fetched(answer(200, body, content_type="text/html"))
    assert piece == "<!--" or "needle" in got.content


async def test_a_slash_command_names_the_page() -> None:
    found = tool_of(web_fetch)
    assert found is not None
    match = re.fullmatch(found.slash or "", "/fetch https://example.com")
    assert match is not None
    assert match["url"] == "https://example.com"


async def test_a_person_can_fetch_a_page_at_the_command_line(tmp_path: Path) -> None:
    make_home(tmp_path)
    async with Site({"/": answer(200, b"<h1>Hi</h1>", content_type="text/html")}) as site:
        url = site.url("/", "localhost")
        let_in = f'["localhost:{site.port}"]'
        shown = await anyio.run_process(
            [sys.executable, "-m", "agentd", "web", "web-fetch", url],
            env={**os.environ, "AGENTD_HOME": str(tmp_path), "AGENTD_EGRESS__PRIVATE": let_in},
        )
        assert shown.stdout.decode().splitlines()[-1] == "# Hi"
