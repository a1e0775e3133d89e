"""A reply of Chat Completions as it comes in. Pure, and patient with servers that only resemble it.

Seen among them: calls without an id, with the id of an earlier one, or all at the same index;
arguments that are an object, or no JSON; "stop" although there are calls; no usage at all.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentd.domain.ids import new_id
from agentd.domain.jsons import is_array, is_object
from agentd.domain.usage import Usage
from agentd.models.arguments import read_arguments

Block = dict[str, Any]

_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_REASONING = ("reasoning_content", "reasoning")
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class DraftCall:
    """One call as its pieces come in. `id` empty: the server gave none."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: Mapping[str, Any] | None = None

    def take(self, delta: Mapping[str, Any]) -> None:
        function: Mapping[str, Any] = delta.get("function") or {}
        self.id = self.id or _text(delta.get("id"))
        name, arguments = _text(function.get("name")), function.get("arguments")
        if name != self.name:  # some repeat it with each piece
            self.name += name
        self.arguments.append(json.dumps(arguments) if is_object(arguments) else _text(arguments))
        self.extra = delta.get("extra_content") or self.extra

    def is_another(self, delta: Mapping[str, Any]) -> bool:
        """Whether `delta`, although it has the same index, starts a call of its own."""
        call_id = _text(delta.get("id"))
        if call_id and self.id:
            return call_id != self.id
        function: Mapping[str, Any] = delta.get("function") or {}
        named = bool(function.get("name"))
        whole = "".join(self.arguments)
        return named and bool(whole) and read_arguments(whole) is not None


@dataclass(slots=True)
class Draft:
    """A whole reply once `finish_reason` is there. `model`: what the server says it is."""

    model: str = ""
    finish_reason: str | None = None
    refused: bool = False
    usage: Mapping[str, Any] | None = None
    text: list[str] = field(default_factory=list[str])
    reasoning: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    calls: list[DraftCall] = field(default_factory=list[DraftCall])
    _at: dict[int, DraftCall] = field(default_factory=dict[int, DraftCall])

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Raises LookupError, TypeError, AttributeError or ValueError when it makes no sense."""
        self.model = _text(chunk.get("model")) or self.model
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue  # nobody asked for a second one
            self._add(choice.get("delta") or choice.get("message") or {})
            self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason

    def _add(self, delta: Mapping[str, Any]) -> None:
        self.text.append(_text(delta.get("content")))
        if delta.get("refusal"):
            self.text.append(_text(delta["refusal"]))
            self.refused = True
        for name in _REASONING:
            if piece := delta.get(name):
                self.reasoning.setdefault(name, []).append(_text(piece))
        for each in delta.get("tool_calls") or ():
            self._add_call(each)

    def _add_call(self, delta: Mapping[str, Any]) -> None:
        index = int(delta.get("index") or 0)
        call = self._at.get(index)
        if call is None or call.is_another(delta):
            call = self._at[index] = DraftCall()
            self.calls.append(call)
        call.take(delta)

    def blocks(
        self, taken: Collection[str], names: Mapping[str, str]
    ) -> tuple[list[Block], dict[str, str]]:
        """The reply in the shapes of the Messages API, and the arguments that are no object.

        taken: the ids of the conversation's earlier calls; an id must not come twice.
        names: those of the tools that were shortened, by what they were shortened to.
        """
        blocks: list[Block] = [
            {"type": "thinking", "thinking": "".join(pieces), "field": name}
            for name, pieces in list(self.reasoning.items())[:1]  # some send it under both names
        ]
        if text := "".join(self.text):
            blocks.append({"type": "text", "text": text})
        invalid: dict[str, str] = {}
        used = set(taken)
        for call in self.calls:
            call.name = names.get(call.name, call.name)
            block, raw = _block_of(call, used)
            used.add(block["id"])
            blocks.append(block)
            if raw is not None:
                invalid[block["id"]] = raw
        return blocks, invalid

    def stop_reason(self) -> str:
        if self.refused:
            return "refusal"
        known = _STOP_REASONS.get(self.finish_reason or "")
        return known or ("tool_use" if self.calls else "end_turn")

    def counted(self) -> Usage | None:
        """What the server says it took; None when it does not say."""
        if self.usage is None:
            return None
        details: object = self.usage.get("prompt_tokens_details")
        cached = int(details.get("cached_tokens") or 0) if is_object(details) else 0
        return Usage(
            input_tokens=max(0, int(self.usage.get("prompt_tokens") or 0) - cached),
            output_tokens=int(self.usage.get("completion_tokens") or 0),
            cache_read_tokens=cached,
        )

    def estimated(self, request_bytes: int) -> Usage:
        """What it must have taken, about."""
        pieces = [*self.text, *(p for each in self.reasoning.values() for p in each)]
        pieces += [piece for call in self.calls for piece in (call.name, *call.arguments)]
        chars = sum(map(len, pieces))
        return Usage(_tokens(request_bytes), _tokens(chars))


def _block_of(call: DraftCall, used: Collection[str]) -> tuple[Block, str | None]:
    """The call as a block, and its arguments as text if they are no object."""
    given = _LEGAL_ID.fullmatch(call.id) is not None and call.id not in used
    raw = "".join(call.arguments)
    value = read_arguments(raw)
    block: Block = {
        "type": "tool_use",
        "id": call.id if given else "call_" + str(new_id()).replace("-", ""),
        "name": _ILLEGAL_IN_NAME.sub("_", call.name)[:128] or "unnamed",
        "input": value or {},
    }
    if call.extra is not None:
        block["extra_content"] = call.extra
    return block, raw if value is None else None


def _text(value: object) -> str:
    """Text, also where it comes as a list of parts."""
    if value is None:
        return ""
    if is_array(value):
        return "".join(_text(part.get("text")) for part in value)
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_PER_TOKEN)
