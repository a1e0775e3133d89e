"""The arguments of a tool call, as a model wrote them."""

import json
from collections.abc import Mapping

from agentd.domain.jsons import is_object


def read_arguments(text: str) -> Mapping[str, object] | None:
    """The arguments; None when they are no object, or one that can not be sent back."""
    try:
        value: object = json.loads(text) if text else {}
        must_be_sendable(value)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def must_be_sendable(value: object) -> None:
    """Python reads more than JSON can say: NaN, infinity, half a character. Raises ValueError."""
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
