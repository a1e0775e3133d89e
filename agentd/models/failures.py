"""What is the same in the failures of all providers that answer over HTTP."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.models.unsent import never_left

_BY_STATUS = {
    401: ModelErrorKind.AUTHENTICATION,
    402: ModelErrorKind.BILLING,
    403: ModelErrorKind.AUTHENTICATION,
    408: ModelErrorKind.TIMEOUT,
    409: ModelErrorKind.SERVER,
    429: ModelErrorKind.RATE_LIMIT,
    503: ModelErrorKind.OVERLOADED,
    504: ModelErrorKind.TIMEOUT,
    529: ModelErrorKind.OVERLOADED,
}


def kind_of(status: int) -> ModelErrorKind:
    """What an error status of a response means."""
    kind = _BY_STATUS.get(status)
    if kind is not None:
        return kind
    return ModelErrorKind.SERVER if status >= 500 else ModelErrorKind.INVALID_REQUEST


def unreachable(
    error: Exception, kind: ModelErrorKind, *, request_id: str | None = None
) -> ModelError:
    """No response, or none that ended."""
    cause = f" ({error.__cause__})" if error.__cause__ else ""
    message = f"{type(error).__name__}: {error}{cause}"
    return ModelError(kind, message, request_id=request_id, unsent=never_left(error))


def broken_stream(message: str, request_id: str | None) -> ModelError:
    return ModelError(ModelErrorKind.BROKEN_STREAM, message, status=200, request_id=request_id)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`retry-after-ms`, or `retry-after` as seconds or as an HTTP date (RFC 9110, 10.2.3)."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        after = headers.get("retry-after")
        if after is None:
            return None
        if after.replace(".", "", 1).isdecimal():
            return float(after)
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return None
