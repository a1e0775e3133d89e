"""web_fetch: a page of the web, as text."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

import anyio
from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.http import Answer, Http, Request
from agentd.toolkit.definition import Effect, tool
from agentd.tools.web.charset import decode
from agentd.tools.web.readable import readable

_TIMEOUT_S = 15.0  # seed 003
_MOST_BYTES = 2 * 1024 * 1024
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.*|application/(.+\+)?(json|xml|yaml|toml|javascript)|application/(ecmascript|x-yaml|"
    r"x-javascript|x-sh|ld\+json|x-ndjson|jsonl|sql|graphql)|image/svg\+xml|message/rfc822"
)
_ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5"
# Control characters steer terminals; characters of the tag block can be read by nobody but a model.
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page. `url`: where it was found in the end. `cut`: only its first 2 MB were read.

    `inline_chars`: what of `content` the model gets at once; the rest is had in pages.
    """

    content: str
    url: str
    status: int
    content_type: str
    charset: str
    title: str
    fetched_bytes: int
    cut: bool

    inline_chars: ClassVar[int] = 10_240  # seed 003: 10 KB


@tool(
    group="web",
    effect=Effect.READ,
    outside=True,
    slash=r"/fetch (?P<url>\S+)",
    toolsets=("worker", "chat", "subagent"),
)
async def web_fetch(
    http: Http,
    commands: Commands,
    url: Annotated[str, Field(min_length=1, description="An absolute http or https URL.")],
) -> Fetched:
    """Fetch a page of the web as text: HTML as Markdown, JSON and other text as it is.

    Redirects are followed. The first line says where the page was found; long pages come in parts.
    """
    try:
        with anyio.fail_after(_TIMEOUT_S):
            asked = Request(
                url,
                headers={"accept": _ACCEPT},
                most_bytes=_MOST_BYTES,
                cut=True,
                timeout_s=_TIMEOUT_S,
            )
            answer = (await http.send(asked)).checked()
            return await _fetched(answer, commands)
    except TimeoutError as error:
        raise ToolError("timeout", f"{url} took longer than {_TIMEOUT_S:g} s") from error


async def _fetched(answer: Answer, commands: Commands) -> Fetched:
    kind = answer.content_type or ("application/octet-stream" if b"\0" in answer.body else "")
    _check_is_text(answer, kind)
    said = answer.headers.get("content-type", "")
    text, charset = await anyio.to_thread.run_sync(decode, answer.body, said)
    title = ""
    if kind in _HTML or (
        not kind and text.lstrip()[:15].lower().startswith(("<!doctype", "<html"))
    ):
        page = await readable(text, answer.url, commands)
        title, text = page.title, page.text
    text = _UNSEEN.sub("", text)
    size = len(answer.body)
    notes = f", only the first {size} bytes of it" if answer.cut else f", {size} bytes"
    head = f"{answer.url} ({answer.status} {kind or 'no type'}{notes})"
    lines = [head, *([f"Title: {title}"] if title else []), "", text or "(it has no text)"]
    return Fetched(
        content="\n".join(lines),
        url=answer.url,
        status=answer.status,
        content_type=kind,
        charset=charset,
        title=title,
        fetched_bytes=size,
        cut=answer.cut,
    )


def _check_is_text(answer: Answer, kind: str) -> None:
    # Some servers call everything text; what holds NUL and no mark of UTF-16 is not.
    marked = answer.body.startswith((b"\xff\xfe", b"\xfe\xff"))
    wide = "utf-16" in answer.headers.get("content-type", "").lower()
    binary = b"\0" in answer.body[:8192] and not marked and not wide
    if binary or (kind and not _TEXT.fullmatch(kind) and kind not in _HTML):
        raise ToolError(
            "unsupported_type",
            f"{answer.url} is {kind or 'binary'} ({len(answer.body)} bytes), not text",
            next_action_hint="web_fetch shows HTML, JSON, XML and other text.",
        )
