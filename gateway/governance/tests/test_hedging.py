"""When a hedge may begin, and that hedges stay a share of the calls whatever happens."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance import hedging
from gateway.governance.hedging import FRESH, Tail
from gateway.governance.rules import HedgeRules

ON = HedgeRules(share=0.05)


def after(times: list[float]) -> Tail:
    tail = FRESH
    for service_ms in times:
        tail = hedging.served(tail, service_ms)
    return tail


def test_it_is_off_unless_somebody_says_so() -> None:
    assert hedging.after_ms(after([10.0] * 100), HedgeRules()) == 0
    assert hedging.after_ms(FRESH, HedgeRules(after_ms=20)) == 0


def test_a_time_that_is_given_holds_from_the_first_call() -> None:
    assert hedging.after_ms(FRESH, HedgeRules(share=0.1, after_ms=20)) == 20


def test_nobody_is_hedged_while_nothing_is_known() -> None:
    assert hedging.after_ms(after([10.0] * 19), ON) == 0
    assert hedging.after_ms(after([10.0] * 20), ON) > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_comes_near_the_slowest_twentieth(seed: int) -> None:
    chance = random.Random(seed)
    times = [chance.lognormvariate(3, 0.5) for _ in range(20_000)]
    found = after(times).slow_ms
    slower = sum(one > found for one in times) / len(times)
    assert 0.01 < slower < 0.12


def test_a_target_that_slows_down_is_believed_soon() -> None:
    tail = after([10.0] * 1_000 + [100.0] * 60)
    assert tail.slow_ms > 60


@given(st.lists(st.booleans(), max_size=400))
def test_hedges_are_never_more_than_their_share_and_a_burst(wants: list[bool]) -> None:
    """When everything is slow, every call would be hedged, and twice as slow."""
    tail, sent = FRESH, 0
    for number, wanted in enumerate(wants, 1):
        tail = hedging.began(tail, ON)
        if wanted and hedging.may_hedge(tail):
            tail, sent = hedging.hedged(tail), sent + 1
        assert sent <= number * ON.share + hedging.BURST
        assert tail.tokens >= 0
