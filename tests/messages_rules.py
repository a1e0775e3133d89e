"""What the Messages API refuses, as pure functions: a list of violations, empty when all is well.

Each line starts with the place it is about, as the API's own messages do. Only rules that the real
API has stand here; what agentd promises beyond them is asserted by the tests of the transcript.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentd.domain.jsons import is_array, is_object

Block = Mapping[str, Any]
Sign = Callable[[str], str]

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_THINKING = ("thinking", "redacted_thinking")
_ROOT_UNIONS = ("oneOf", "anyOf", "allOf")
_BREAKPOINTS_MOST = 4


def sign(thinking: str) -> str:
    """The signature that the test server gives to a thinking block, in every process the same."""
    return "sig_" + hashlib.sha256(thinking.encode()).hexdigest()[:32]


def check_messages(messages: Sequence[Mapping[str, Any]], signer: Sign | None = None) -> list[str]:
    """Violations of the rules for `messages`. With `signer`, thinking must carry its signature."""
    if not messages:
        return ["messages: at least one message is required"]
    problems = list(_check_roles(messages))
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        problems += _check_content(where, message, last=number == len(messages) - 1)
        for place, block in enumerate(_blocks(message)):
            problems += _check_block(f"{where}.content.{place}", block, message["role"], signer)
    problems += _check_calls(messages)
    return problems


def check_request(body: Mapping[str, Any], signer: Sign | None = None) -> list[str]:
    """Violations of the rules for a whole request body, its messages included."""
    problems: list[str] = []
    if not isinstance(body.get("model"), str) or not body["model"]:
        problems.append("model: Field required")
    max_tokens = body.get("max_tokens")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        problems.append(f"max_tokens: must be an integer of at least 1, not {max_tokens!r}")
    problems += _check_tools(body.get("tools", []))
    problems += _check_system(body.get("system", ""))
    messages = body.get("messages")
    if not is_array(messages) or not all(is_object(message) for message in messages):
        return [*problems, "messages: must be a list of objects"]
    problems += _check_breakpoints(body)
    return problems + check_messages(messages, signer)


def _check_roles(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if messages[0].get("role") != "user":
        yield "messages.0: the first message must have the role user"
    before = None
    for number, message in enumerate(messages):
        role = message.get("role")
        if role not in ("user", "assistant"):
            yield f"messages.{number}.role: must be user or assistant, not {role!r}"
        elif role == before:
            yield f"messages.{number}.role: roles must alternate, but {role} follows {role}"
        before = role
        if unknown := set(message) - {"role", "content"}:
            yield f"messages.{number}: extra inputs are not permitted: {sorted(unknown)}"


def _check_content(where: str, message: Mapping[str, Any], *, last: bool) -> Iterator[str]:
    content = message.get("content")
    if not isinstance(content, str | list):
        yield f"{where}.content: must be a string or a list of blocks"
        return
    if not content or (isinstance(content, str) and not content.strip()):
        yield f"{where}: all messages must have non-empty content"
        return
    if message.get("role") != "assistant":
        return
    final = _blocks(message)[-1]
    if final.get("type") in _THINKING:
        yield f"{where}: the final block in an assistant message cannot be `{final['type']}`"
    text = final.get("text", "") if final.get("type") == "text" else ""
    if last and text != text.rstrip():
        yield f"{where}: final assistant content cannot end with trailing whitespace"


def _check_block(where: str, block: Block, role: str, signer: Sign | None) -> Iterator[str]:
    match block.get("type"):
        case None:
            yield f"{where}.type: Field required"
        case "text":
            yield from _check_text(where, block)
        case "tool_use":
            yield from _check_tool_use(where, block, role)
        case "tool_result":
            yield from _check_tool_result(where, block, role)
        case "thinking" | "redacted_thinking":
            yield from _check_thinking(where, block, role, signer)
        case _:
            pass


def _check_text(where: str, block: Block) -> Iterator[str]:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        yield f"{where}.text: text content blocks must be non-empty"
    if "citations" in block and not isinstance(block["citations"], list | None):
        yield f"{where}.citations: must be a list"


def _check_tool_use(where: str, block: Block, role: str) -> Iterator[str]:
    if role != "assistant":
        yield f"{where}: `tool_use` blocks can only be in assistant messages"
    if not _CALL_ID.fullmatch(str(block.get("id", ""))):
        yield f"{where}.id: must match ^[a-zA-Z0-9_-]+$, not {block.get('id')!r}"
    if not _TOOL_NAME.fullmatch(str(block.get("name", ""))):
        yield f"{where}.name: must match ^[a-zA-Z0-9_-]{{1,128}}$, not {block.get('name')!r}"
    if not is_object(block.get("input")):
        yield f"{where}.input: must be a dictionary"


def _check_tool_result(where: str, block: Block, role: str) -> Iterator[str]:
    if role != "user":
        yield f"{where}: `tool_result` blocks can only be in user messages"
    content: object = block.get("content", "")
    if not (isinstance(content, str) or is_array(content)):
        yield f"{where}.content: must be a string or a list of blocks"
        return
    if block.get("is_error") and not content:
        yield f"{where}: content cannot be empty if `is_error` is true"
    if is_array(content):
        for place, part in enumerate(content):
            if part.get("type") == "text":
                yield from _check_text(f"{where}.content.{place}", part)


def _check_thinking(where: str, block: Block, role: str, signer: Sign | None) -> Iterator[str]:
    kind = block["type"]
    if role != "assistant":
        yield f"{where}: `{kind}` blocks can only be in assistant messages"
    if "cache_control" in block:
        yield f"{where}.cache_control: extra inputs are not permitted"
    if kind == "redacted_thinking":
        if not isinstance(block.get("data"), str) or not block["data"]:
            yield f"{where}.data: Field required"
        return
    thinking, signature = block.get("thinking"), block.get("signature")
    if not isinstance(thinking, str) or not isinstance(signature, str) or not signature:
        yield f"{where}: `thinking` and `signature` are required"
    elif signer is not None and signer(thinking) != signature:
        yield f"{where}: Invalid `signature` in `thinking` block: it was modified or is not ours"


def _check_calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call has one result, in the message right after it and before anything else."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        yield from _check_results(where, message, open_ids, seen)
        open_ids = [str(b.get("id")) for b in _blocks(message) if b.get("type") == "tool_use"]
        for call_id in open_ids:
            if call_id in seen:
                yield f"{where}: `tool_use` ids must be unique: {call_id}"
            seen.add(call_id)
    if open_ids:
        yield (
            f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(open_ids)}"
        )


def _check_results(
    where: str, message: Mapping[str, Any], open_ids: Sequence[str], seen: set[str]
) -> Iterator[str]:
    blocks = _blocks(message)
    kinds = [block.get("type") == "tool_result" for block in blocks]
    results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
    if open_ids and kinds != sorted(kinds, reverse=True):
        yield f"{where}: `tool_result` blocks must come first in the message"
    for result_id in sorted(set(results)):
        if result_id not in open_ids:
            late = " (its call is further back)" if result_id in seen else ""
            yield (
                f"{where}: unexpected `tool_use_id` in `tool_result`: {result_id}; each needs its "
                f"`tool_use` in the previous message{late}"
            )
        if results.count(result_id) > 1:
            yield f"{where}: each `tool_use` must have a single result: {result_id} has several"
    if missing := [call_id for call_id in open_ids if call_id not in results]:
        yield f"{where}: `tool_use` ids were found without `tool_result`: {', '.join(missing)}"


def _check_tools(tools: Any) -> Iterator[str]:
    if not is_array(tools):
        yield "tools: must be a list"
        return
    names: set[str] = set()
    for number, tool in enumerate(tools):
        where = f"tools.{number}"
        name = str(tool.get("name", ""))
        if not _TOOL_NAME.fullmatch(name):
            yield f"{where}.name: must match ^[a-zA-Z0-9_-]{{1,128}}$, not {name!r}"
        if name in names:
            yield f"tools: tool names must be unique: {name}"
        names.add(name)
        if tool.get("type", "custom") != "custom":
            continue
        schema = tool.get("input_schema")
        if not is_object(schema) or schema.get("type") != "object":
            yield f"{where}.input_schema.type: must be object"
        elif unions := [key for key in _ROOT_UNIONS if key in schema]:
            yield f"{where}.input_schema: does not support {', '.join(unions)} at the top level"


def _check_system(system: Any) -> Iterator[str]:
    if isinstance(system, str):
        return
    for place, block in enumerate(system):
        if block.get("type") != "text":
            yield f"system.{place}.type: must be text"
        else:
            yield from _check_text(f"system.{place}", block)


def _check_breakpoints(body: Mapping[str, Any]) -> Iterator[str]:
    system = body.get("system", "")
    carriers: list[Block] = [*body.get("tools", []), *([] if isinstance(system, str) else system)]
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    for message in messages:
        for block in _blocks(message):
            carriers.append(block)
            inner = block.get("content")
            carriers += inner if is_array(inner) else []
    marks = [carrier["cache_control"] for carrier in carriers if carrier.get("cache_control")]
    if len(marks) > _BREAKPOINTS_MOST:
        yield f"cache_control: at most {_BREAKPOINTS_MOST} blocks may carry it, found {len(marks)}"
    for mark in marks:
        if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            yield f"cache_control: must be ephemeral with a ttl of 5m or 1h, not {mark}"


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if is_array(content) else []
