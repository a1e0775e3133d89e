"""How long to wait before the next try, and when there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.errors import TRANSIENT, ModelError, ModelErrorKind
from agentd.models.retrying import Backoff

OVERLOADED = ModelError(ModelErrorKind.OVERLOADED, "full")
transient = st.sampled_from(sorted(TRANSIENT))
seconds = st.floats(0.01, 100)


@given(transient, st.integers(1, 20), seconds, seconds)
def test_the_wait_doubles_up_to_a_cap_and_its_upper_half_is_random(
    kind: ModelErrorKind, attempt: int, base_s: float, cap_s: float
) -> None:
    backoff = Backoff(attempts=21, base_s=base_s, cap_s=cap_s)
    wait_s = backoff(ModelError(kind, "no"), attempt)
    ceiling_s = min(cap_s, base_s * 2 ** (attempt - 1))
    assert wait_s is not None
    assert ceiling_s / 2 <= wait_s <= ceiling_s


def test_two_that_failed_together_do_not_come_back_together() -> None:
    assert len({Backoff()(OVERLOADED, 3) for _ in range(20)}) > 1


@pytest.mark.parametrize("kind", sorted(set(ModelErrorKind) - TRANSIENT))
def test_what_will_not_get_better_is_not_tried_again(kind: ModelErrorKind) -> None:
    assert Backoff()(ModelError(kind, "no", retry_after_s=1), 1) is None


def test_the_last_try_is_the_last() -> None:
    backoff = Backoff(attempts=3)
    assert [backoff(OVERLOADED, attempt) is None for attempt in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
    ]


@given(st.floats(0, 300))
def test_a_wait_that_the_provider_asks_for_is_honoured_in_full(asked_s: float) -> None:
    error = ModelError(ModelErrorKind.RATE_LIMIT, "slow down", retry_after_s=asked_s)
    wait_s = Backoff(base_s=1, cap_s=2)(error, 1)
    assert wait_s is not None
    assert asked_s <= wait_s <= asked_s * 1.1


@pytest.mark.parametrize("asked_s", [300.1, 86_400.0, float("inf")])
def test_a_wait_beyond_the_cap_is_given_up(asked_s: float) -> None:
    error = ModelError(ModelErrorKind.RATE_LIMIT, "tomorrow", retry_after_s=asked_s)
    assert Backoff(retry_after_cap_s=300)(error, 1) is None
