"""An event: one row of a session's journal. Appended, never updated."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentd.domain.ids import RunId, SessionId, TaskId

Json = Mapping[str, Any]


class EventKind(StrEnum):
    USER = "user"  # what was said to the model: a prompt, a message, a reminder
    ASSISTANT = "assistant"  # one complete reply of the model, its blocks unchanged
    TOOL_CALL = "tool_call"  # the intent to run one call, written before its effect
    TOOL_RESULT = "tool_result"  # what came of one call
    NOTE = "note"  # for people: retries, drains, endings; the model never sees it
    COMPACTION = "compaction"  # a summary that stands for the events before it


@dataclass(frozen=True, slots=True)
class LargeResult:
    """What a tool gave, in full, where its event shows only the first page.

    `outside`: strangers wrote it. `page_chars`: of each page but the last; noted with it, so that
    pages stay where they are when the setting changes.
    """

    id: str
    session_id: SessionId
    task_id: TaskId
    call_id: str
    tool: str
    outside: bool
    content: str
    page_chars: int


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before the journal gave it its place. `large`: is written with it."""

    kind: EventKind
    body: Json
    task_id: TaskId | None = None
    run_id: RunId | None = None
    large: LargeResult | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """`seq` counts from 1 within its session, without holes.

    The shapes of `body`:

    user         {"text": str, "source": "task"|"message"|"resume"|"reminder"}
    assistant    {"content": [block], "stop_reason": str, "model": str,
                  "is_estimated": true if nobody counted the tokens, else absent}
    tool_call    {"call_id": str, "tool": str, "effect": str, "digest": sha256 hex of the arguments,
                  "within": call_id of the program that made the call, absent for the model's own}
    tool_result  {"call_id": str, "tool": str, "content": str or [block], "is_error": bool,
                  "error_type": str or absent, "data": the typed output or absent,
                  "large_result": its id when it is stored in full, else absent,
                  "outside": true when strangers wrote it, else absent,
                  "within": as above}
    note         {"note": str, ...}
    """

    session_id: SessionId
    seq: int
    kind: EventKind
    body: Json
    task_id: TaskId | None
    run_id: RunId | None
    created_at: datetime

    @property
    def inside(self) -> bool:
        """It is about a call that a program made: nothing the model sees."""
        return "within" in self.body


def storable(body: Json) -> Json:
    """The body as every store can keep it: half a surrogate pair becomes U+FFFD."""
    text = json.dumps(body, ensure_ascii=False)
    kept = storable_text(text)
    return body if kept is text else json.loads(kept)


def storable_text(text: str) -> str:
    """Of a text; the same object where nothing has to be mended."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
