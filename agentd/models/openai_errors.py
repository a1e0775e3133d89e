"""What an error of the OpenAI SDK means: which kind it is, and how long to wait."""

import openai

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.jsons import is_object
from agentd.models.failures import kind_of, retry_after_s

_BY_WORD = {
    "insufficient_quota": ModelErrorKind.BILLING,
    "rate_limit_exceeded": ModelErrorKind.RATE_LIMIT,
    "rate_limit_error": ModelErrorKind.RATE_LIMIT,
    "overloaded_error": ModelErrorKind.OVERLOADED,
    "invalid_request_error": ModelErrorKind.INVALID_REQUEST,
    "invalid_api_key": ModelErrorKind.AUTHENTICATION,
    "authentication_error": ModelErrorKind.AUTHENTICATION,
}
_HINTS = {
    ModelErrorKind.AUTHENTICATION: "Check OPENAI_API_KEY, then: agentd task retry ID",
    ModelErrorKind.BILLING: "Check the account's credit, then: agentd task retry ID",
}


def translate(error: openai.APIStatusError) -> ModelError:
    """A response with an error status."""
    kind = kind_of(error.status_code)
    if kind is ModelErrorKind.RATE_LIMIT and "insufficient_quota" in (error.code, error.type):
        kind = ModelErrorKind.BILLING  # no waiting helps
    return ModelError(
        kind,
        _message(error),
        status=error.status_code,
        retry_after_s=retry_after_s(error.response.headers),
        request_id=error.request_id,
        hint=_HINTS.get(kind),
    )


def in_stream(error: openai.APIError, request_id: str | None) -> ModelError:
    """An error instead of the next piece. `code` is a word, or a status as some gateways do it."""
    words = [error.code or "", error.type or ""]
    kind = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    if kind is None:
        status = next((int(word) for word in words if word.isdecimal()), 500)
        kind = kind_of(status)
    message = _message(error)
    return ModelError(kind, message, status=200, request_id=request_id, hint=_HINTS.get(kind))


def _message(error: openai.APIError) -> str:
    """The server's own words."""
    body = error.body
    if is_object(body) and body.get("message"):
        return str(body["message"])
    return body if isinstance(body, str) and body else error.message
