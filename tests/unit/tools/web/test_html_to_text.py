"""HTML as plain text, and what hostile HTML can not do."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.tools.web.html_to_text import html_to_text

pytestmark = pytest.mark.requirement("S4-26")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<h1>T</h1>text<h6>U</h6>more", "T\n\ntext\n\nU\n\nmore"),
        ("a<blockquote>b</blockquote>c", "a\n\nb\n\nc"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ('<a href="https://x.org/?a=1&amp;b=2">text</a>.', "text (https://x.org/?a=1&b=2)."),
        ("<a href='/u'>one <b>two</b></a> three", "one two (/u) three"),
        ("<a href=u>x</a><a>y</a><a name=n>z</a>", "x (u)yz"),
        ("<A\nHREF = u\n>x</A>", "x (u)"),
        ("<a href=u>never closed", "never closed (u)"),
        ("<a href=u>one<a href=v>two</a>", "one (u)two (v)"),
        ("<ul><li>one<li>two</ul>after", "- one\n- two\nafter"),
        ("<ol><li><p>one</p></li><li>two</li></ol>", "- one\n\n- two"),
        ("<ul><li>a<ul><li>b</li></ul></li></ul>", "- a\n- b"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", "a\tb\n1\t2"),
        ("<table>\n <tr>\n <td> 1 </td>\n <td> 2 </td>\n </tr>\n</table>", "1\t2"),
        ("<tr><td><p>1</p></td><td><div>2</div></td></tr>", "1\t2"),
        ("<tr><td>a</td><td></td><td>c</td></tr>", "a\t\tc"),
        ("a<script>var x = '<p>no</p>';</script>b", "ab"),
        ("a<SCRIPT src=x>no</SCRIPT >b<style>p{}</style>c", "abc"),
        ("a<script>never closed <p>b", "a"),
        ("a<script>if (a</scripty>b)</script>c", "ac"),
        ("&lt;b&gt; &amp;amp; &#65;&#x42; &eacute; &nbsp;&hellip;", "<b> &amp; AB é …"),
        ("  a \n\t b  <b> c </b>  d ", "a b c d"),
        ("a<!-- no --> b<!-->c<!DOCTYPE html>d<?php no ?>e", "a bcde"),
        ("a<!-- never closed <p>b", "a"),
        ("1 < 2 and 3 <4 and <>", "1 < 2 and 3 <4 and <>"),
        ('<p title="a>b">c</p><p title=it\'s>d</p>e', "c\n\nd\n\ne"),
        ("<title>T</title><nav>N</nav><p hidden>H", "T\n\nN\n\nH"),
        ("a\x1b[31m\x00b", "a[31mb"),
        ("", ""),
        ("no markup", "no markup"),
    ],
)
def test_html_as_text(html: str, text: str) -> None:
    assert html_to_text(html) == text


HOSTILE = [
    "<!--", "<", "</", "<!", "<?", "<a ", "<a '", '<a "\'>', "<a href=", " href", "&", "&#", "<p>",
    "<td>", "<li>", "<br>", "<script>", "<script></script", "<a href=x>", "\t \n", "<![CDATA[",
    "<x \"'", "<b> </b>", "&#9", "9", "a", "<table><tr><td>",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("start", ["", "<a", "&#"])
def test_hostile_html_takes_time_in_proportion(piece: str, start: str) -> None:
    def spent_s(length: int) -> float:
        html = start + piece * (length // len(piece))
        best = 9.0
        for _ in range(3):
            began = time.process_time()
            html_to_text(html)
            best = min(best, time.process_time() - began)
        return best

    # Four times as long takes four times as much; sixteen, if it were quadratic.
    assert spent_s(80_000) < 9 * spent_s(20_000) + 0.02


_PIECES = st.sampled_from(
    ["<", ">", "/", "&", ";", '"', "'", "=", " ", "\n", "\t", "\0", "a", "p", "td", "<p>", "<!--",
     "<a href=", "</a>", "<tr>", "<td>", "<li>", "<script>", "</script>", "-->", "&lt;", "&#", "é"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=60).map("".join)))
def test_it_never_raises_and_stays_small_and_tidy(html: str) -> None:
    text = html_to_text(html)
    assert len(text) <= len(html)
    assert "  " not in text
    assert "\n\n\n" not in text
    assert text == text.strip(" \n")
    assert not any(ord(each) < 32 and each not in "\n\t" for each in text)


def test_a_number_too_long_to_be_a_character() -> None:
    assert html_to_text("a&#" + "9" * 5000 + ";b") == "a\ufffdb"
