"""What a server asks a person in the middle of a call (elicitation).

Nobody can be kept waiting on the line for days: the server is told that nobody answers, the call
ends with `input_required`, the task waits, and when a person has answered, the same call is made
again and the answer given. All of it is read from the journal, so it outlives a crash.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult
from pydantic import ValidationError

from agentd.domain.event import Event, EventKind
from agentd.domain.jsons import is_object
from agentd.toolkit.given import GivenSchema, check_schema
from agentd.toolkit.result import ToolResult

INPUT_REQUIRED = "input_required"
_QUESTION_MOST_CHARS = 8000
_YES = frozenset({"yes", "y", "true", "ok"})
_NO = frozenset({"no", "n", "false"})


@dataclass(frozen=True, slots=True)
class Question:
    """`schema`: of the answer, an object of plain values; None: a page that is to be opened."""

    server: str
    message: str
    schema: Mapping[str, Any] | None
    url: str | None
    problem: str | None = None

    @classmethod
    def of(cls, server: str, asked: ElicitRequestParams) -> "Question | None":
        """None: it is none that a person could be shown."""
        if len(asked.model_dump_json()) > _QUESTION_MOST_CHARS:
            return None
        if isinstance(asked, ElicitRequestURLParams):
            return cls(server, asked.message, None, asked.url)
        schema = asked.requested_schema
        fields = [*schema.get("properties", {}).values()] if check_schema(schema) is None else [0]
        return cls(server, asked.message, schema, None) if all(map(is_object, fields)) else None

    @property
    def key(self) -> str:
        """The same for the same question."""
        text = json.dumps([self.server, self.message, self.schema, self.url], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def text(self) -> str:
        """For the person."""
        lines = [f"{self.server} asks: {self.message}"]
        if self.url:
            lines.append(f"Open {self.url} and answer `done`.")
        for name, each in (self.schema or {}).get("properties", {}).items():
            about = each.get("description") or each.get("title") or ""
            choice = f" ({', '.join(map(str, each['enum']))})" if each.get("enum") else ""
            lines.append(f"- {name}: {each.get('type', 'text')}{choice} {about}".rstrip())
        if self.problem:
            lines.append(f"The last answer does not do: {self.problem}")
        return "\n".join(lines)


def result_for(questions: Sequence[Question], tool: str) -> ToolResult:
    """What the call gives when nobody has answered yet."""
    first = questions[0]
    return ToolResult(
        ok=False,
        error=first.text(),
        error_type=INPUT_REQUIRED,
        next_action_hint=f"The task waits until a person has answered. Then call {tool} again with "
        "the same arguments: the answer is given to the server.",
        data={"question": first.key, "reason": first.text()},
    )


def answers(events: Iterable[Event], tool: str) -> dict[str, str]:
    """What a person said to the questions of `tool`, by their keys.

    Of several questions in one turn the task shows the first, so that is the one that was answered:
    what is meant for one server must never be given to another. Once a call of the tool has come to
    an end otherwise, earlier answers are used up.
    """
    found: dict[str, str] = {}
    shown: tuple[str, str] | None = None
    for event in events:
        body = event.body
        match event.kind:
            case EventKind.ASSISTANT:
                shown = None
            case EventKind.TOOL_RESULT if body.get("error_type") == INPUT_REQUIRED:
                shown = shown or (body["tool"], str(body.get("data", {}).get("question")))
            case EventKind.TOOL_RESULT if body["tool"] == tool:
                found = {}
            case EventKind.USER if body.get("sender") == "person" and shown:
                asked_by, key = shown
                found |= {key: body["text"]} if asked_by == tool else {}
                shown = None
            case _:
                pass
    return found


def answer(question: Question, text: str) -> ElicitResult | str:
    """What the server is told, or why `text` is no answer."""
    said = text.strip()
    if said.lower() in ("decline", "refuse"):
        return ElicitResult(action="decline")
    if question.schema is None:
        return ElicitResult(action="accept")
    content = _content(question.schema, said)
    if isinstance(content, str):
        return content
    its = question.schema.get("properties", {})
    defaults = {name: each["default"] for name, each in its.items() if "default" in each}
    content = {**defaults, **content}
    problems = GivenSchema(question.schema).problems(content)
    if problems:
        return "; ".join(problems)
    try:
        return ElicitResult(action="accept", content=content)
    except ValidationError:
        return "it must hold plain values"


def _content(schema: Mapping[str, Any], said: str) -> dict[str, Any] | str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if said.startswith("{"):
        try:
            parsed = json.loads(said)
        except ValueError as error:
            return f"it is no valid JSON: {error}"
        return parsed if is_object(parsed) else "it is no JSON object"
    required: Sequence[str] = schema.get("required", [])
    names = list(required) if len(required) == 1 else list(properties)
    if len(names) != 1:
        return f"answer with a JSON object with {', '.join(names)}"
    return {names[0]: _typed(said, properties.get(names[0], {}).get("type"))}


def _typed(said: str, kind: object) -> Any:
    if kind == "boolean" and said.lower() in _YES | _NO:
        return said.lower() in _YES
    if kind in ("integer", "number"):
        try:
            return json.loads(said)
        except ValueError:
            return said
    return said
