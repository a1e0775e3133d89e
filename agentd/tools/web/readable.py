"""HTML as Markdown: what a reader of the page sees, with its links absolute."""

import html as entities
import re
from dataclasses import dataclass

import html_to_markdown
from html_to_markdown import (
    ConversionError,
    ConversionOptions,
    PreprocessingOptions,
    WarningKind,
)

from agentd.tools.web.html_to_text import html_to_text

_UNSEEN = ("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_LOOK_CHARS = 65_536


@dataclass(frozen=True, slots=True)
class Readable:
    """A page as text. `title`: empty when it has none."""

    title: str
    text: str


def readable(html: str, url: str) -> Readable:
    """Never raises. Text that the page hides from its readers is left out; blocks for a while."""
    found = _TITLE.search(html[:_LOOK_CHARS])
    title = " ".join(entities.unescape(found[1]).split()) if found else ""
    return Readable(title, _markdown(html, url) or html_to_text(html))


def _markdown(html: str, url: str) -> str:
    """Empty when the page is nested too deeply, or not HTML at all."""
    options = ConversionOptions(
        base_url=url,
        compact_tables=True,
        exclude_selectors=[*_UNSEEN, '[aria-hidden="true"]'],
        extract_metadata=False,  # it would be put in front of the text
        hidden_content="drop",
        inline_data_media="alt_text_only",
        preprocessing=PreprocessingOptions(),
        skip_images=True,
    )
    try:
        found = html_to_markdown.convert(html, options)
    except ConversionError:
        return ""
    cut = any(each.kind == WarningKind.DEPTH_LIMIT_EXCEEDED for each in found.warnings)
    return "" if cut else (found.content or "").strip()
