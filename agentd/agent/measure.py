"""How many tokens a request can have at the most, before the provider has counted it."""

import json

from agentd.agent.pictures import with_pictures
from agentd.domain.usage import Usage
from agentd.models.model import ModelRequest

# What providers put in front of tools and messages by themselves; documented are up to 530 tokens.
_UNSEEN_TOKENS = 1000
# Documented are up to 4,784 for the models that see the most of a picture.
_PICTURE_TOKENS = 6000
_AS_LONG_AS_A_PICTURE = {"type": "image", "filler": "x" * _PICTURE_TOKENS}
_CLOSING = len(b"}]}]]")  # of the JSON: the last block and message stay open to what follows


class Measure:
    """An upper bound of the input of each request, tight as soon as one of the run was counted.

    Every token of a tokenizer that works on bytes, or falls back to them, stands for at least one
    byte of text, and the JSON of a request holds all its text (escapes only lengthen it) and more
    bytes around each message than the provider has marks for it. So bytes bound tokens. A request
    that starts with one that was counted has its tokens plus, at most, the bytes that came on top.
    A picture is made smaller by the provider until it has no more than a certain number of tokens.
    """

    def __init__(self) -> None:
        self._model = ""
        self._start = b""
        self._counted = 0

    def input_tokens(self, request: ModelRequest) -> int:
        body = _body(request)
        bound = len(body) + _UNSEEN_TOKENS
        if self._counted and request.model == self._model and body.startswith(self._start):
            return min(bound, self._counted + len(body) - len(self._start))
        return bound

    def learn(self, request: ModelRequest, usage: Usage) -> None:
        """What the provider has counted for `request`."""
        self._model = request.model
        self._start = _body(request)[:-_CLOSING]
        self._counted = usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens


def _body(request: ModelRequest) -> bytes:
    messages = with_pictures(request.messages, lambda _: _AS_LONG_AS_A_PICTURE)
    parts = [request.system, list(request.tools), messages]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
