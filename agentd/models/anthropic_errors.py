"""What an error of the Anthropic SDK means: which kind it is, and how long to wait."""

import json

import anthropic

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.jsons import is_object
from agentd.models.failures import kind_of, retry_after_s

_BY_TYPE = {
    "overloaded_error": ModelErrorKind.OVERLOADED,
    "rate_limit_error": ModelErrorKind.RATE_LIMIT,
    "timeout_error": ModelErrorKind.TIMEOUT,
    "authentication_error": ModelErrorKind.AUTHENTICATION,
    "permission_error": ModelErrorKind.AUTHENTICATION,
    "billing_error": ModelErrorKind.BILLING,
    "invalid_request_error": ModelErrorKind.INVALID_REQUEST,
    "not_found_error": ModelErrorKind.INVALID_REQUEST,
    "request_too_large": ModelErrorKind.INVALID_REQUEST,
}
_HINTS = {
    ModelErrorKind.AUTHENTICATION: "Check ANTHROPIC_API_KEY, then: agentd task retry ID",
    ModelErrorKind.BILLING: "Check the account's credit, then: agentd task retry ID",
}


def translate(error: anthropic.APIStatusError) -> ModelError:
    """A response with an error status."""
    status = error.status_code
    message = _message(error)
    kind = kind_of(status)
    if kind is ModelErrorKind.INVALID_REQUEST and "credit balance" in message:
        kind = ModelErrorKind.BILLING
    return ModelError(
        kind,
        message,
        status=status,
        retry_after_s=retry_after_s(error.response.headers),
        request_id=error.request_id,
        hint=_HINTS.get(kind),
    )


def in_stream(text: str, request_id: str | None) -> ModelError:
    """An error event in the middle of a stream; `text`: its data, JSON if all is well."""
    try:
        body: object = json.loads(text)
    except ValueError:
        body = None
    inner = body.get("error") if is_object(body) else None
    facts = inner if is_object(inner) else {}
    kind = _BY_TYPE.get(str(facts.get("type")), ModelErrorKind.SERVER)
    return ModelError(kind, str(facts.get("message") or text), status=200, request_id=request_id)


def _message(error: anthropic.APIStatusError) -> str:
    """The provider's own words."""
    body = error.body
    inner = body.get("error") if is_object(body) else None
    if is_object(inner) and "message" in inner:
        return str(inner["message"])
    return error.message
