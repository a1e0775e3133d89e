"""A price is known, or it is unknown; it is never taken for zero."""

from datetime import date

import pytest
from structlog.testing import capture_logs

from agentd.domain.usage import Price, Usage
from agentd.models.prices import PriceList, price_of, prices_as_of

OWN = Price(input=1, output=2, cache_write=3, cache_read=4)


def test_a_model_with_a_date_costs_what_its_family_costs() -> None:
    family = price_of("claude-haiku-4-5")
    assert family is not None
    assert price_of("claude-haiku-4-5-20251001") == family


@pytest.mark.parametrize("model", ["", "claude", "gpt-x", "claude-opus-9", "my-claude-opus-4-6"])
def test_the_price_of_an_unknown_model_is_unknown(model: str) -> None:
    assert price_of(model) is None


def test_the_longest_name_wins_and_the_configuration_over_the_table() -> None:
    assert price_of("claude-opus-4-6", {"claude-opus-4-6": OWN}) == OWN
    assert price_of("claude-opus-4-6-fast", {"claude-opus-4-6-fast": OWN}) == OWN
    assert price_of("claude-opus-4-6", {"claude": OWN}) == price_of("claude-opus-4-6")
    assert price_of("claude-of-tomorrow", {"claude": OWN}) == OWN


def test_a_model_may_be_named_with_its_provider() -> None:
    assert price_of("anthropic:claude-opus-4-6") == price_of("claude-opus-4-6")
    assert price_of("openai:qwen3", {"openai:": OWN}) == OWN
    assert price_of("openai:qwen3-8b", {"qwen3": OWN}) == OWN


def test_what_a_gateway_asks_for_a_model_of_another_provider_is_unknown() -> None:
    assert price_of("openai:claude-opus-4-6") is None
    assert price_of("openai:claude-opus-4-6", {"claude-opus-4-6": OWN}) == OWN


def test_a_model_without_a_price_is_reported_once() -> None:
    prices = PriceList({"qwen3": OWN})
    with capture_logs() as logs:
        for _ in range(3):
            assert prices("openai:gpt-x") is None
            assert prices("openai:qwen3") == OWN
    (said,) = logs
    assert said["model"] == "openai:gpt-x"
    assert "no price" in said["event"]


def test_the_table_says_of_which_day_it_is() -> None:
    assert date(2025, 1, 1) < prices_as_of() < date(2100, 1, 1)


def test_the_scripted_model_is_known_to_be_free() -> None:
    price = price_of("scripted:demo")
    assert price is not None
    assert price.cost_microusd(Usage(1000, 1000, 1000, 1000)) == 0


@pytest.mark.parametrize("name", ["opus-4-6", "opus-4-5", "sonnet-4-6", "sonnet-4-5", "haiku-4-5"])
def test_the_cache_costs_what_the_provider_says_of_it(name: str) -> None:
    """Writing for five minutes: a quarter more than reading afresh; reading back: a tenth."""
    price = price_of(f"claude-{name}")
    assert price is not None
    assert price.cache_write == pytest.approx(1.25 * price.input)
    assert price.cache_read == pytest.approx(0.1 * price.input)
    assert price.output == 5 * price.input


def test_a_million_tokens_cost_the_list_price() -> None:
    price = price_of("claude-sonnet-4-6")
    assert price is not None
    assert price.cost_microusd(Usage(1_000_000, 1_000_000)) == 18_000_000
