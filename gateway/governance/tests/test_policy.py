"""What the row skips: a policy that rests on a fresh state would have said and changed nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.governor import Row
from gateway.governance.outcome import Outcome
from gateway.governance.policy import Column
from gateway.governance.rules import BreakerRules, RateRules, Rules, Slots
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT
from gateway.governance.wish import Closing

RULES = Rules(
    queues=QUEUES,
    breaker=BreakerRules(failures_in_a_row=2),
    target=Slots(limit=2),
    rate=RateRules(per_second=10, burst=2),
    actions={"x": RateRules(per_second=10, burst=2)},
)
RATE = RateRules(per_second=5, burst=1)
PARTS = Row().parts
NUMBERS = range(len(PARTS))
times = st.integers(0, 100_000).map(float)


def named(number: int) -> str:
    return type(PARTS[number].policy).__name__


def test_some_rest_and_some_do_not() -> None:
    resting = [part.name for part in PARTS if part.policy.stirred_by is not None]
    assert resting == ["retry_tokens", "push_back"]


@pytest.mark.parametrize("part", [part for part in PARTS if part.policy.stirred_by is not None])
@given(now_ms=times, is_retry=st.booleans(), is_head=st.booleans(), retry_after=st.integers(0, 99))
def test_a_policy_that_rests_has_nothing_to_say_about_a_fresh_state(
    part: Column[object], now_ms: float, is_retry: bool, is_head: bool, retry_after: int
) -> None:
    policy, asking = part.policy, wish(RULES, now_ms=now_ms, is_retry=is_retry, is_head=is_head)
    fresh, stirred_by = policy.fresh, policy.stirred_by
    assert stirred_by is not None
    assert policy.check(fresh, asking, waiting=0) is ADMIT
    assert policy.take(fresh, asking) == (fresh, 0)
    for outcome in set(Outcome) - stirred_by:
        closing = Closing(asking, outcome, now_ms + 5, retry_after)
        assert policy.observe(fresh, closing, note=0) == fresh
    for outcome in stirred_by:
        closing = Closing(asking, outcome, now_ms + 5, 1)
        assert policy.observe(fresh, closing, note=0) != fresh, "else it is not stirred by it"


@pytest.mark.parametrize("number", [n for n in NUMBERS if not PARTS[n].policy.fades], ids=named)
@given(moves=st.lists(st.tuples(st.sampled_from(list(Outcome)), times), max_size=9), at_ms=times)
def test_what_does_not_fade_is_idle_when_it_is_fresh_and_only_then(
    number: int, moves: list[tuple[Outcome, float]], at_ms: float
) -> None:
    policy = Row().parts[number].policy
    state = policy.fresh
    for outcome, now_ms in moves:
        asking = wish(RULES, now_ms=now_ms, contract_rate=RATE)
        state, note = policy.take(state, asking)
        assert policy.is_idle(state, at_ms) == (state == policy.fresh)
        state = policy.observe(state, Closing(asking, outcome, now_ms), note=note)
        assert policy.is_idle(state, at_ms) == (state == policy.fresh)
