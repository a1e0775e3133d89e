"""What a model call costs."""

from agentd.domain.usage import Price, Usage

_SONNET = Price(input=3, output=15, cache_write=3.75, cache_read=0.3)


def test_each_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    assert _SONNET.cost_microusd(Usage(input_tokens=million)) == 3 * million
    assert _SONNET.cost_microusd(Usage(output_tokens=million)) == 15 * million
    assert _SONNET.cost_microusd(Usage(cache_write_tokens=million)) == 3_750_000
    assert _SONNET.cost_microusd(Usage(cache_read_tokens=million)) == 300_000
    assert _SONNET.cost_microusd(Usage(1, 1, 1, 1)) == 23  # 22.05


def test_a_call_is_never_counted_below_its_price() -> None:
    assert _SONNET.cost_microusd(Usage(cache_read_tokens=1)) == 1
    assert _SONNET.cost_microusd(Usage()) == 0
