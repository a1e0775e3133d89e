"""The one place that shortens, marks and cleans what a tool gave, before the journal and the model.

Up to so many characters are shown as they are. What is longer and has no pages of its own is stored
in full with its event, and the model gets the first page and the call for the next one.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from agentd.agent.journal import Journal
from agentd.domain.event import EventKind, LargeResult, NewEvent, storable_text
from agentd.domain.jsons import is_object
from agentd.domain.outside import marked, marked_blocks, said
from agentd.domain.redactor import Redactor
from agentd.toolkit.result import Blocks, ToolResult, head, model_content

_LEFT_OUT = "\n[{chars} characters of the middle are left out here: the result had {whole}]\n"
_NOTICE = (
    "[cut: {missing} of {whole} characters are missing here. Go on with "
    'read_large_result(id="{id}", page={page})]'
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """As the section `results` of the settings says."""

    store_over_chars: int = 10_000
    page_chars: int = 8000
    inline_chars: int = 40_000
    most_chars: int = 5_000_000


@dataclass(frozen=True, slots=True)
class ResultLayer:
    """What becomes of results in one run's journal."""

    journal: Journal
    bounds: Bounds
    redactor: Redactor

    def event(self, call_id: str, tool: str, result: ToolResult) -> NewEvent:
        """The result as it is journaled; what is stored in full goes along with it."""
        result = cleaned(result, self.redactor)
        shown, large = self._first_page(call_id, tool, result)
        body: dict[str, Any] = {
            "call_id": call_id,
            "tool": tool,
            "content": model_content(self._marked(shown)),
            "is_error": result.is_error,
        }
        if result.error_type is not None:
            body["error_type"] = result.error_type
        if result.outside_of is not None:
            body["outside"] = True
        if large is not None:
            body["large_result"] = large.id
        body |= self._data(result, is_stored=large is not None)
        event = self.journal.event(EventKind.TOOL_RESULT, **body)
        return replace(event, large=large)

    def _first_page(
        self, call_id: str, tool: str, result: ToolResult
    ) -> tuple[ToolResult, LargeResult | None]:
        """What is shown of it, and the whole where that is more. Of pictures: all."""
        blocks = _blocks_of(result)
        text = said(blocks) if blocks else result.text or ""
        if result.next_call is not None and not blocks:
            shown, notice = head(text, self.bounds.inline_chars, result.next_call)
            return result.showing(shown, notice or result.notice), None
        limit = min(result.inline_chars or self.bounds.store_over_chars, self.bounds.inline_chars)
        if len(text) <= limit:
            return result, None
        large = self._large(call_id, tool, result, text)
        size = min(self.bounds.page_chars, limit)
        notice = _NOTICE.format(
            missing=len(text) - size,
            whole=len(text),
            id=large.id,
            page=2 if size == self.bounds.page_chars else 1,
        )
        if blocks:
            return replace(result, content=_head(blocks, size), notice=notice), large
        return result.showing(text[:size], notice), large

    def _large(self, call_id: str, tool: str, result: ToolResult, text: str) -> LargeResult:
        run = self.journal.run
        kept = _without_middle(text, self.bounds.most_chars)
        # Made from what it names: the same result twice is no news, neither on disk nor to a guard.
        facts = (run.session_id, tool, str(self.bounds.page_chars), kept)
        return LargeResult(
            id="lr_" + hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16],
            session_id=run.session_id,
            task_id=run.task_id,
            call_id=call_id,
            tool=result.outside_of or tool,
            outside=result.outside_of is not None,
            content=kept,
            page_chars=self.bounds.page_chars,
        )

    def _marked(self, result: ToolResult) -> ToolResult:
        """What strangers made, between marks that they can not know; the notice after them."""
        source, salt = result.outside_of, self.journal.run.session_id
        if source is None:
            return result
        if blocks := _blocks_of(result):
            return replace(result, content=marked_blocks(blocks, source=source, salt=salt))
        return result.showing(marked(result.text or "", source=source, salt=salt))

    def _data(self, result: ToolResult, *, is_stored: bool) -> dict[str, Any]:
        """The typed output, without what the content or the stored result holds already."""
        data = result.data
        if is_object(data) and isinstance(result.content, str):
            own = ("content", "message")
            data = {n: v for n, v in data.items() if n not in own or v != result.content}
            is_stored &= len(data) == len(result.data)
        if data is None or is_stored:
            return {}
        chars = len(json.dumps(data, ensure_ascii=False))
        return {"data": data} if chars <= self.bounds.store_over_chars else {"data_chars": chars}


def cleaned(result: ToolResult, redactor: Redactor) -> ToolResult:
    """Without secrets, and as every store can keep it."""
    content = result.content
    if isinstance(content, str):
        content = redactor.redact(storable_text(content))
    else:
        content = [_block(block, redactor) for block in content]
    return replace(
        result,
        content=content,
        data=redactor.cleaned(result.data),
        error=_text(result.error, redactor),
        next_action_hint=_text(result.next_action_hint, redactor),
        notice=_text(result.notice, redactor),
    )


def _text(text: str | None, redactor: Redactor) -> str | None:
    return None if text is None else redactor.redact(storable_text(text))


def _block(block: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Of an image nothing is changed."""
    return redactor.cleaned(block) if block.get("type") == "text" else block


def _blocks_of(result: ToolResult) -> Blocks:
    """What it gives when that is more than text."""
    return [] if result.is_error or isinstance(result.content, str) else result.content


def _head(blocks: Blocks, chars: int) -> Blocks:
    """The first `chars` characters of what they say, and whatever is no text."""
    shown: Blocks = []
    for block in blocks:
        if block["type"] != "text":
            shown.append(block)
        elif chars > 0:
            shown.append({**block, "text": block["text"][:chars]})
            chars -= len(block["text"]) + 1  # the line end between two
    return shown


def _without_middle(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    tail = most_chars // 2
    left_out = _LEFT_OUT.format(chars=len(text) - most_chars, whole=len(text))
    return text[: most_chars - tail] + left_out + text[-tail:]
