"""A provider that is down is left alone, and one call at a time finds out whether it is back."""

import pytest

from agentd.domain.errors import TRANSIENT, ModelError, ModelErrorKind
from agentd.models.breaker import Breaker, BreakerOpen, Breakers, BreakerState
from tests.clock import HandClock

Kind = ModelErrorKind


@pytest.fixture
def breaker(clock: HandClock) -> Breaker:
    return Breaker("anthropic", clock, threshold=3, cooldown_s=60)


def fail(breaker: Breaker, kind: Kind = Kind.OVERLOADED, **facts: float) -> None:
    with pytest.raises(ModelError), breaker.call():
        raise ModelError(kind, "made up", **facts)  # type: ignore[arg-type]


def succeed(breaker: Breaker) -> None:
    with breaker.call():
        pass


def opened(breaker: Breaker) -> Breaker:
    for _ in range(3):
        fail(breaker)
    return breaker


def refuses(breaker: Breaker) -> bool:
    try:
        succeed(breaker)
    except BreakerOpen:
        return True
    return False


def test_it_opens_after_that_many_failures_in_a_row(breaker: Breaker) -> None:
    fail(breaker)
    fail(breaker)
    succeed(breaker)
    fail(breaker)
    fail(breaker)
    assert not refuses(breaker)
    assert refuses(opened(breaker))
    assert breaker.wait_s() == 60


def test_calls_that_fail_together_count_once(breaker: Breaker) -> None:
    error = ModelError(Kind.OVERLOADED, "made up")
    for _ in range(2):
        calls = [breaker.call() for _ in range(50)]
        for each in calls:
            each.__enter__()
        for each in calls:
            assert not each.__exit__(ModelError, error, None)
    assert breaker.report().failures == 2
    assert not refuses(breaker)


@pytest.mark.parametrize("kind", list(Kind))
def test_only_failures_of_the_provider_count(kind: Kind, breaker: Breaker) -> None:
    for _ in range(10):
        if breaker.wait_s() == 0:
            fail(breaker, kind)
    assert refuses(breaker) == (kind in TRANSIENT)


def test_after_the_cooldown_one_call_probes_and_the_others_wait(
    breaker: Breaker, clock: HandClock
) -> None:
    opened(breaker)
    clock.advance(59)
    assert refuses(breaker)
    clock.advance(1)
    with breaker.call():
        assert breaker.report().state is BreakerState.PROBING
        assert breaker.wait_s() > 0
        assert refuses(breaker)
    assert breaker.report().state is BreakerState.CLOSED
    assert not refuses(breaker)


def test_a_probe_that_fails_opens_it_for_another_cooldown(
    breaker: Breaker, clock: HandClock
) -> None:
    opened(breaker)
    clock.advance(60)
    fail(breaker)
    assert breaker.wait_s() == 60
    clock.advance(60)
    succeed(breaker)
    assert breaker.report().state is BreakerState.CLOSED


def test_a_probe_that_the_provider_refuses_has_been_answered(
    breaker: Breaker, clock: HandClock
) -> None:
    opened(breaker)
    clock.advance(60)
    fail(breaker, Kind.INVALID_REQUEST)
    assert breaker.wait_s() == 0


def test_a_probe_that_is_cut_off_leaves_the_next_one_its_turn(
    breaker: Breaker, clock: HandClock
) -> None:
    opened(breaker)
    clock.advance(60)
    with pytest.raises(KeyboardInterrupt), breaker.call():
        raise KeyboardInterrupt
    assert breaker.report().state is BreakerState.OPEN
    assert not refuses(breaker)


def test_a_call_from_before_that_is_answered_closes_it_and_one_that_fails_changes_nothing(
    breaker: Breaker, clock: HandClock
) -> None:
    with breaker.call():
        opened(breaker)
    assert breaker.report().state is BreakerState.CLOSED
    with pytest.raises(ModelError), breaker.call():
        opened(breaker)
        clock.advance(10)
        raise ModelError(Kind.TIMEOUT, "late")
    assert breaker.wait_s() == 50


@pytest.mark.parametrize(("asked_s", "rest_s"), [(1, 60), (120, 120), (86400, 300)])
def test_a_provider_that_asks_for_a_longer_rest_gets_it_within_reason(
    asked_s: float, rest_s: float, breaker: Breaker
) -> None:
    fail(breaker)
    fail(breaker)
    fail(breaker, Kind.RATE_LIMIT, retry_after_s=asked_s)
    assert breaker.wait_s() == rest_s


def test_each_provider_has_one_for_all_its_models_and_each_script_its_own(
    clock: HandClock,
) -> None:
    breakers = Breakers(clock, threshold=1)
    assert breakers.of("anthropic:a") is breakers.of("anthropic:b")
    assert breakers.of("scripted:a") is not breakers.of("scripted:b")
    fail(breakers.of("anthropic:a"))
    assert refuses(breakers.of("anthropic:b"))
    assert not refuses(breakers.of("openai:qwen3:8b"))


def test_its_state_can_be_read(clock: HandClock) -> None:
    breakers = Breakers(clock, threshold=2, cooldown_s=60)
    breakers.of("openai:x")
    fail(breakers.of("anthropic:x"))
    fail(breakers.of("anthropic:x"))
    clock.advance(10)
    first, second = breakers.states()
    assert (first.provider, first.state, first.failures) == ("anthropic", BreakerState.OPEN, 2)
    assert (first.retry_in_s, first.last_error) == (50, "made up")
    assert (second.provider, second.state, second.retry_in_s) == ("openai", BreakerState.CLOSED, 0)
