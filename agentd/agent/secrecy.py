"""What of an event may be changed to keep a secret out of the journal, and what may not."""

from typing import Any

from agentd.domain.event import EventKind, Json
from agentd.domain.redactor import Redactor


def without_secrets(kind: EventKind, body: Json, redactor: Redactor) -> Json:
    """The body as it may be kept and sent.

    Calls and results come without secrets already (results.py): they may be long.
    """
    if not redactor or kind in (EventKind.TOOL_CALL, EventKind.TOOL_RESULT):
        return body
    if kind is not EventKind.ASSISTANT:
        cleaned: Json = redactor.cleaned(body)
        return cleaned
    kept = dict(body)
    kept["content"] = [_block(block, redactor) for block in body["content"]]
    if "invalid_inputs" in body:
        kept["invalid_inputs"] = redactor.cleaned(body["invalid_inputs"])
    return kept


def _block(block: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Words and inputs. Thinking is signed by the provider and must go back byte for byte."""
    match block["type"]:
        case "text":
            return {**block, "text": redactor.redact(block["text"])}
        case "tool_use":
            return {**block, "input": redactor.cleaned(block["input"])}
        case _:
            return block
