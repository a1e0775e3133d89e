"""OpenAI, and every server that speaks Chat Completions, through the official SDK.

Streams, puts the reply together from plain dictionaries (the SDK would build a model of each piece)
and retries nothing. A server with an address of its own needs no key.
"""

import json
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.jsons import is_object
from agentd.models.arguments import must_be_sendable
from agentd.models.failures import broken_stream, unreachable
from agentd.models.keys import problem_of_key
from agentd.models.model import ModelReply, ModelRequest
from agentd.models.openai_errors import in_stream, translate
from agentd.models.openai_messages import chat_messages, function_tool, wire_name
from agentd.models.openai_stream import Draft
from agentd.models.unsent import never_left

_CONNECT_S = 10.0
_PUBLIC = "https://api.openai.com/v1"
_OWN_HOSTS = (".openai.com", ".azure.com")
_NO_KEY = "none"  # the SDK insists on one
_KEY_HINT = "Set OPENAI_API_KEY for the daemon, or models.openai.base_url for a server of your own."


class OpenAiModel:
    """`base_url` None: the public API. `stall_s`: silence that counts as a broken stream."""

    def __init__(
        self, model: str, *, api_key: str | None, base_url: str | None, stall_s: float
    ) -> None:
        self._model = model
        key = (api_key or "").strip() or (_NO_KEY if base_url else "")
        self._client = None
        self._base_url = base_url or _PUBLIC
        self._is_own = (urlsplit(self._base_url).hostname or "").endswith(_OWN_HOSTS)
        self._problem = problem_of_key(key, "OpenAI")
        if self._problem is None:
            self._client = openai.AsyncOpenAI(
                api_key=key,
                base_url=self._base_url,
                max_retries=0,
                timeout=httpx2.Timeout(stall_s, connect=_CONNECT_S),
                http_client=openai.DefaultAioHttpClient(),
            )
            if not self._is_own:  # read from the environment, and nobody else's business
                self._client.organization = self._client.project = None

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    async def reply(self, request: ModelRequest) -> ModelReply:
        if self._client is None:
            raise ModelError(ModelErrorKind.AUTHENTICATION, str(self._problem), hint=_KEY_HINT)
        body = self._body(request)
        try:
            stream = await self._client.post(
                "/chat/completions",
                content=body,
                cast_to=object,
                options={"headers": {"Content-Type": "application/json"}},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except openai.APIStatusError as error:
            raise translate(error) from error
        except openai.APIConnectionError as error:
            raise self._unreached(error) from error
        except openai.OpenAIError as error:
            raise unreachable(error, ModelErrorKind.INVALID_REQUEST) from error
        async with stream:
            return await self._gather(stream, request, len(body))

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _body(self, request: ModelRequest) -> bytes:
        # OpenAI's newer models refuse the old name of the limit, other servers know no other.
        limit = "max_completion_tokens" if self._is_own else "max_tokens"
        body: dict[str, Any] = {
            "model": request.model,
            limit: request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": chat_messages(request.system, request.messages),
        }
        if request.tools:  # an empty list is refused
            body["tools"] = [function_tool(tool) for tool in request.tools]
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    async def _gather(
        self, stream: openai.AsyncStream[object], request: ModelRequest, sent_bytes: int
    ) -> ModelReply:
        request_id = stream.response.headers.get("x-request-id")
        draft = Draft()
        try:
            whole = await _whole(stream.response)
            if whole is not None:
                draft.take(whole)
            else:
                async for chunk in stream:
                    draft.take(chunk)  # type: ignore[arg-type]  # checked by taking it
            reply = self._reply(draft, request, sent_bytes, request_id)
            must_be_sendable([reply.content, reply.invalid_inputs])
        except openai.APITimeoutError as error:
            raise unreachable(error, ModelErrorKind.TIMEOUT, request_id=request_id) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise unreachable(error, ModelErrorKind.BROKEN_STREAM, request_id=request_id) from error
        except openai.APIError as error:
            raise in_stream(error, request_id) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            # Nobody has checked what pieces look like: a field may be missing or of another type.
            raise broken_stream(f"the stream makes no sense: {error!r}", request_id) from error
        if draft.finish_reason in (None, "error"):
            raise broken_stream("the stream ended before the reply did", request_id)
        return reply

    def _unreached(self, error: openai.APIConnectionError) -> ModelError:
        # The SDK's transport takes every connection that fails for one that took too long.
        nobody = not isinstance(error, openai.APITimeoutError)
        if nobody or isinstance(error.__cause__, httpx2.ConnectTimeout):
            hint = f"Is there a server at {self._base_url}?"
            message = f"no connection: {error.__cause__ or error}"
            return ModelError(
                ModelErrorKind.CONNECTION, message, hint=hint, unsent=never_left(error)
            )
        return unreachable(error, ModelErrorKind.TIMEOUT)

    def _reply(
        self, draft: Draft, request: ModelRequest, sent_bytes: int, request_id: str | None
    ) -> ModelReply:
        names = {wire_name(tool["name"]): tool["name"] for tool in request.tools}
        content, invalid = draft.blocks(_ids_in(request), names)
        counted = draft.counted()
        return ModelReply(
            content=content,
            stop_reason=draft.stop_reason(),
            usage=counted or draft.estimated(sent_bytes),
            model=f"openai:{draft.model or self._model}",
            request_id=request_id,
            invalid_inputs=invalid,
            is_estimated=counted is None,
        )


async def _whole(response: httpx2.Response) -> dict[str, Any] | None:
    """The reply of a server that does not stream; None: it comes in pieces.

    A wrong address is often answered with a page, or with an error that claims success.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in ("text/html", "application/json"):
        return None
    text = (await response.aread()).decode(errors="replace")
    body: object = json.loads(text) if kind == "application/json" else None
    if is_object(body) and body.get("choices"):
        return body
    raise ModelError(
        ModelErrorKind.INVALID_REQUEST,
        f"{response.url} answered with {kind} where a reply was expected: {text[:200]}",
        status=response.status_code,
        hint="Look at models.openai.base_url: most servers want it to end with /v1.",
    )


def _ids_in(request: ModelRequest) -> set[str]:
    """The ids of all calls so far."""
    return {
        block["id"]
        for message in request.messages
        for block in message["content"]
        if block["type"] == "tool_use"
    }
