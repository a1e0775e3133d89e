"""HTML as plain text: lines for blocks, `text (url)` for links, tabs between the cells of a table.

Reads the markup itself: the standard HTMLParser needs quadratic time for what a hostile page can
hold (unclosed comments, declarations) in the Python versions that agentd runs on.
"""

import html as entities
import re

_BLOCK = re.compile(
    "address|article|aside|caption|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|"
    "footer|form|header|hr|legend|main|nav|ol|option|pre|section|summary|tbody|tfoot|thead|tr|ul"
)
_PARAGRAPH = re.compile("blockquote|h[1-6]|p|table|title")
_CELL = re.compile("td|th")
# What stands in these is no text, and not markup either: it ends at its own end tag only.
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>]|\Z)", re.IGNORECASE)
    for name in ("script", "style", "noscript", "template", "iframe", "noembed", "noframes")
}
_MARKUP = re.compile("<(?:/?[a-zA-Z]|[!?])")
# Possessive (++, *+): a piece that was read is never read again in another way.
_TAG = re.compile(r"""</?([a-zA-Z][^\s/>]*+)((?:"[^"]*+"|'[^']*+'|[^'">]++)*+)>""")
# For a quote that is never closed. Happens once for a kind of quote, so time stays linear.
_LOOSE_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*+)([^>]*+)>")
_HREF = re.compile(
    r"""(?:^|[\s"'/])href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE
)
_SPACE = re.compile(r"\s+")
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{100,}+;?")  # Python refuses to count that far
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_EDGES = re.compile(r" *([\t\n]) *")
_SPACES = re.compile(" {2,}")


def html_to_text(html: str) -> str:
    """The text of a page or a mail. Never raises; takes time in proportion to the input.

    Block elements begin and end lines, list items begin with "- ", white space is normalised.
    """
    reader = _Reader()
    at = 0
    while at < len(html):
        found = _MARKUP.search(html, at)
        start = found.start() if found else len(html)
        reader.text(_plain(html[at:start]))
        at = _markup(html, start, reader) if found else start
    reader.end_link()
    text = _EDGES.sub(r"\1", _SPACES.sub(" ", "".join(reader.parts)))
    return text.strip(" \n")


class _Reader:
    """What was read so far. `_gap`: line ends that go in front of the next text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._gap = 0
        self._bullet = ""
        self._href = ""
        self._in_row = False

    def text(self, text: str) -> None:
        if not text or ((self._gap or self._bullet) and not text.strip()):
            return
        self._end_lines()
        self.parts += [self._bullet, text]
        self._bullet = ""

    def tag(self, name: str, attributes: str, *, closing: bool) -> None:
        if _PARAGRAPH.fullmatch(name):
            self._break(2)
        elif _BLOCK.fullmatch(name):
            self._in_row = self._in_row and name != "tr"
            self._break(1)
        elif name == "br":
            self._gap = min(2, self._gap + 1)
        elif name == "li":
            self._break(1)
            self._bullet = "" if closing else "- "
        elif name == "a":
            self.end_link()
            self._href = "" if closing else _href(attributes)
        elif _CELL.fullmatch(name) and not closing:
            self._cell()

    def end_link(self) -> None:
        if self._href:
            self.text(f" ({self._href})")
        self._href = ""

    def _cell(self) -> None:
        if self._in_row:
            self._gap = 0
            self.parts.append("\t")
        else:
            self._end_lines()
        self._in_row = True

    def _break(self, lines: int) -> None:
        fresh = not self.parts or self.parts[-1] in ("\t", "\n", "\n\n")
        if not fresh and not self._bullet:
            self._gap = max(self._gap, lines)

    def _end_lines(self) -> None:
        if self._gap:
            self.parts.append("\n" * self._gap)
        self._gap = 0


def _markup(html: str, start: int, reader: _Reader) -> int:
    """Read what begins at `start`; where it ends. What never ends is left out, as browsers do."""
    if html.startswith("<!--", start):
        return _after(html, "-->", start + 2)  # <!--> is a comment, too
    if html.startswith(("<!", "<?"), start):
        return _after(html, ">", start)
    found = _TAG.match(html, start) or _LOOSE_TAG.match(html, start)
    if found is None:
        return len(html)
    name, closing = found[1].lower(), html.startswith("</", start)
    reader.tag(name, found[2], closing=closing)
    if name in _RAW and not closing:
        end = _RAW[name].search(html, found.end())
        return end.start() if end else len(html)
    return found.end()


def _after(html: str, mark: str, start: int) -> int:
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)


def _plain(raw: str) -> str:
    text = entities.unescape(_LONG_NUMBER.sub("\ufffd", raw))
    return _SPACE.sub(" ", _CONTROL.sub("", text))


def _href(attributes: str) -> str:
    found = _HREF.search(attributes)
    return _plain(found[1] or found[2] or found[3] or "").replace(" ", "") if found else ""
