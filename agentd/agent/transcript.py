"""The journal as messages for the model. A pure function; nothing else makes messages.

For every prefix of every journal the result is legal for the Messages API: it starts with the user,
each tool_use has exactly one tool_result in the next user message, those come first and in the
order of the calls, and no reply that was cut off leaves a call behind. Property: tests/unit/agent/.
What a provider said goes back to it unchanged; of what another one said, words and calls remain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.agent.pictures import only_newest, without_pictures
from agentd.domain.event import Event, EventKind

Block = Mapping[str, Any]
Message = dict[str, Any]

# A reply that ended so may hold calls that are cut off, or that must not be carried out.
CALLS_VOID = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
# After these the reply is sent back as it is, and the provider goes on with it.
_TO_BE_CONTINUED = frozenset({"pause_turn", "compaction"})
# Whose replies name no provider: they are older than the second one.
ANTHROPIC = "anthropic"
_NAMED = frozenset({"openai", "scripted"})
_COMMON = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
# A note after which the pictures before it are not sent again: the provider refused them.
PICTURES_WITHDRAWN = "pictures_withdrawn"
_GO_ON = "Go on."
_INTERRUPTED = "The run ended before this call was carried out."


def tool_calls(reply: Event) -> list[Block]:
    """The calls of one assistant event that are to be carried out, in order."""
    if reply.body["stop_reason"] in CALLS_VOID:
        return []
    return [block for block in reply.body["content"] if block["type"] == "tool_use"]


def unanswered(events: Sequence[Event]) -> tuple[Event, list[Block]] | None:
    """The last reply and those of its calls that have no result yet, or None."""
    answered: set[str] = set()
    for event in reversed(events):
        if event.inside:
            continue
        if event.kind is EventKind.TOOL_RESULT:
            answered.add(event.body["call_id"])
        elif event.kind is EventKind.ASSISTANT:
            missing = [call for call in tool_calls(event) if call["id"] not in answered]
            return (event, missing) if missing else None
    return None


def messages(events: Iterable[Event], provider: str = ANTHROPIC) -> list[Message]:
    """What a model of `provider` is sent. Empty when nothing was said to it yet."""
    draft = _Draft()
    for event in events:
        if event.inside:
            continue
        match event.kind:
            case EventKind.USER:
                draft.say(event.body["text"])
            case EventKind.ASSISTANT:
                draft.reply(
                    _kept_blocks(event, provider), event.body["stop_reason"] in _TO_BE_CONTINUED
                )
            case EventKind.TOOL_RESULT:
                draft.result(event.body)
            case EventKind.NOTE if event.body.get("note") == PICTURES_WITHDRAWN:
                draft.withdraw_pictures()
            case EventKind.TOOL_CALL | EventKind.NOTE | EventKind.COMPACTION:
                pass
    return only_newest(draft.finished())


@dataclass(slots=True)
class _Draft:
    """Messages so far, and what the next user message will hold."""

    messages: list[Message] = field(default_factory=list[Message])
    _open_calls: list[str] = field(default_factory=list[str])
    _results: dict[str, Block] = field(default_factory=dict[str, Block])
    _texts: list[Block] = field(default_factory=list[Block])
    _continued: bool = False

    def say(self, text: str) -> None:
        if text.strip():
            self._texts.append({"type": "text", "text": text})

    def reply(self, blocks: list[Block], continued: bool) -> None:
        self._continued = continued
        if not blocks:
            return
        self.flush()
        self._append("assistant", blocks)
        self._open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]

    def result(self, body: Mapping[str, Any]) -> None:
        call_id = body["call_id"]
        if call_id in self._open_calls:
            self._results.setdefault(call_id, _result_block(body))

    def withdraw_pictures(self) -> None:
        """Of all that was shown so far."""
        for message in self.messages:
            message["content"] = [without_pictures(block) for block in message["content"]]
        self._results = {name: without_pictures(each) for name, each in self._results.items()}

    def finished(self) -> list[Message]:
        """All of them. The provider takes a last reply only when it is to go on with it."""
        self.flush()
        if self.messages and self.messages[-1]["role"] == "assistant" and not self._continued:
            self._append("user", [{"type": "text", "text": _GO_ON}])
        return self.messages

    def flush(self) -> None:
        """Close the user's message: results first, in call order, then what was said."""
        results = [
            self._results.get(call_id)
            or _result_block({"call_id": call_id, "content": _INTERRUPTED, "is_error": True})
            for call_id in self._open_calls
        ]
        if results or self._texts:
            self._append("user", [*results, *self._texts])
        self._open_calls, self._results, self._texts = [], {}, []

    def _append(self, role: str, blocks: list[Block]) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].extend(blocks)
        else:
            self.messages.append({"role": role, "content": list(blocks)})


def _kept_blocks(event: Event, provider: str) -> list[Block]:
    """The blocks that go back: no empty text, no call that is not carried out."""
    void = event.body["stop_reason"] in CALLS_VOID
    content: Sequence[Block] = event.body["content"]
    kept = [
        block
        for block in (content if _provider_of(event) == provider else _common(content))
        if not (void and block["type"] == "tool_use")
        and not (block["type"] == "text" and not block["text"].strip())
    ]
    if event.body["stop_reason"] in _TO_BE_CONTINUED and kept and kept[-1]["type"] == "text":
        # The one place where the API refuses it: the end of a last reply.
        kept[-1] = {**kept[-1], "text": kept[-1]["text"].rstrip()}
    # The API refuses a reply that only thought; it is needed only in front of a call.
    return kept if any(block["type"] not in _THINKING for block in kept) else []


def _provider_of(reply: Event) -> str:
    """Who said it."""
    name = str(reply.body.get("model", "")).partition(":")[0]
    return name if name in _NAMED else ANTHROPIC


def _common(content: Sequence[Block]) -> list[Block]:
    """What every provider understands of another one's reply."""
    return [
        {name: block[name] for name in _COMMON[block["type"]]}
        for block in content
        if block["type"] in _COMMON
    ]


def _result_block(body: Mapping[str, Any]) -> Block:
    block = {
        "type": "tool_result",
        "tool_use_id": body["call_id"],
        "content": body["content"] or "(no output)",
    }
    return {**block, "is_error": True} if body["is_error"] else block
