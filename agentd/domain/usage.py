"""Tokens and money of one model call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counts them. `input_tokens` excludes what the cache read or wrote."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """List price of one model, in US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_write: float
    cache_read: float

    def cost_microusd(self, usage: Usage) -> int:
        """Millionths of a dollar, rounded up: a call is never counted below its price."""
        cost = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_write_tokens * self.cache_write
            + usage.cache_read_tokens * self.cache_read
        )
        return -int(-cost // 1)
