"""What Chat Completions refuses: a list of violations, empty when all is well. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentd.domain.jsons import is_array, is_object

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_CALL_ID_MOST = 40
_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN = frozenset(
    {
        "model",
        "messages",
        "tools",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
    }
)


def check_chat(body: Mapping[str, Any]) -> list[str]:
    """Violations of the rules for a whole request body."""
    problems = [f"Unrecognized request argument supplied: {name}" for name in set(body) - _KNOWN]
    if not isinstance(body.get("model"), str) or not body["model"]:
        problems.append("you must provide a model parameter")
    messages = body.get("messages")
    if not is_array(messages) or not messages:
        return [*problems, "messages: must be a list that is not empty"]
    if "stream_options" in body and not body.get("stream"):
        problems.append("stream_options: only allowed when stream is true")
    problems += _check_tools(body)
    for number, message in enumerate(messages):
        problems += _check_message(f"messages.[{number}]", message)
    return [*problems, *_check_calls(messages)]


def _check_tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        return
    if not body["tools"]:
        yield "tools: [] is too short"
    names: set[str] = set()
    for number, tool in enumerate(body["tools"]):
        function = tool.get("function", {})
        name = str(function.get("name", ""))
        if tool.get("type") != "function" or not _FUNCTION_NAME.fullmatch(name):
            yield f"tools.[{number}]: must be a function with a name, not {tool}"
        if name in names:
            yield f"tools.[{number}]: {name} stands there twice"
        names.add(name)
        if function.get("parameters", {}).get("type") != "object":
            yield f"Invalid schema for function {name!r}: schema must be of type object"


def _check_message(where: str, message: Mapping[str, Any]) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        yield f"{where}.role: must be one of {sorted(_ROLES)}, not {role!r}"
    calls = message.get("tool_calls")
    if content is None and not (role == "assistant" and calls):
        yield f"{where}.content: expected a string, got null"
    if content is not None and not isinstance(content, str):
        yield f"{where}.content: expected a string, got {content!r}"
    if calls is None:
        return
    if role != "assistant" or not calls:
        yield f"{where}.tool_calls: only in an assistant's message, and never empty"
    for call in calls:
        yield from _check_call(where, call)


def _check_call(where: str, call: Mapping[str, Any]) -> Iterator[str]:
    if not call.get("id") or len(call["id"]) > _CALL_ID_MOST:
        yield f"{where}.tool_calls.id: 1 to {_CALL_ID_MOST} characters, not {call.get('id')!r}"
    arguments = call.get("function", {}).get("arguments")
    try:
        readable = is_object(json.loads(arguments))
    except (TypeError, ValueError):
        readable = False
    if call.get("type") != "function" or not readable:
        yield f"{where}.tool_calls: arguments must be an object as text, not {arguments!r}"


def _check_calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call has one result, right behind the message that made it."""
    open_ids: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.[{number}]"
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in open_ids:
                yield (
                    f"{where}: messages with role 'tool' must be a response to a preceding message "
                    f"with 'tool_calls': {call_id}"
                )
            else:
                open_ids.remove(call_id)
            continue
        if open_ids:
            yield (
                f"{where}: an assistant message with 'tool_calls' must be followed by tool "
                f"messages; missing: {', '.join(open_ids)}"
            )
        open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        for call_id in open_ids:
            if call_id in seen:
                yield f"{where}: {call_id} names two calls"
            seen.add(call_id)
    if open_ids:
        yield f"messages: tool messages are missing for {', '.join(open_ids)}"
