"""Token buckets: never over the rate, what was not sent gives its token back, waits that fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.outcome import Outcome
from gateway.governance.rate_limit import OfAction, OfTarget
from gateway.governance.rules import OnExcess, RateRules, Rules
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Defer, Refuse
from gateway.governance.wish import Closing


def rules(per_second: float, burst: int = 1, on_excess: OnExcess = OnExcess.WAIT) -> Rules:
    rate = RateRules(per_second=per_second, burst=burst, on_excess=on_excess, max_waiting=3)
    return Rules(queues=QUEUES, actions={"x": rate}, rate=rate)


@given(
    st.floats(0.5, 1_000),
    st.integers(1, 20),
    st.lists(st.floats(0, 2_000), min_size=1, max_size=80),
)
def test_in_no_stretch_of_time_pass_more_than_the_rate_and_one_burst(
    per_second: float, burst: int, gaps_ms: list[float]
) -> None:
    policy, state, now_ms = OfAction(), OfAction().fresh, 0.0
    passed: list[float] = []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        asking = wish(rules(per_second, burst), now_ms=now_ms)
        if policy.check(state, asking, waiting=0) is ADMIT:
            state, _ = policy.take(state, asking)
            passed.append(now_ms)
    for first, start_ms in enumerate(passed):
        for last in range(first, len(passed)):
            allowed = burst + (passed[last] - start_ms) * per_second / 1000
            assert last - first + 1 <= allowed + 1e-6 * (1 + allowed) + 1e-6


def test_a_bucket_that_rested_holds_one_burst_and_no_more() -> None:
    policy, state = OfTarget(), OfTarget().fresh
    asking = wish(rules(10, burst=5), now_ms=1e9)
    taken = 0
    while policy.check(state, asking, waiting=0) is ADMIT:
        state, _ = policy.take(state, asking)
        taken += 1
    assert taken == 5


def test_who_comes_too_early_waits_for_its_token_if_that_comes_in_time() -> None:
    policy, asking = OfAction(), wish(rules(10), patience_ms=150)
    state, _ = policy.take(policy.fresh, asking)
    assert policy.check(state, asking, waiting=0) == Defer("rate_limit", "rate:c/x", 100.0)
    found = policy.check(state, asking, waiting=1)
    assert isinstance(found, Refuse), "behind another one it would be too late"
    assert found.error.reason == "RATE_LIMITED"
    assert found.error.retry_after_ms == 200
    assert found.error.boundary.value == "GATEWAY"


def test_refuse_means_at_once_and_says_when_the_next_token_comes() -> None:
    policy, asking = OfAction(), wish(rules(10, on_excess=OnExcess.REFUSE), patience_ms=60_000)
    state, _ = policy.take(policy.fresh, asking)
    found = policy.check(state, asking, waiting=0)
    assert isinstance(found, Refuse)
    assert found.error.retry_after_ms == 100


def test_no_more_wait_than_the_declared_number() -> None:
    policy, asking = OfAction(), wish(rules(1_000), patience_ms=60_000)
    state, _ = policy.take(policy.fresh, asking)
    assert isinstance(policy.check(state, asking, waiting=2), Defer)
    assert isinstance(policy.check(state, asking, waiting=3), Refuse)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_did_not_reach_the_target_gives_its_token_back(outcome: Outcome) -> None:
    policy, asking = OfAction(), wish(rules(10))
    state, note = policy.take(policy.fresh, asking)
    after = policy.observe(state, Closing(asking, outcome, 0.0), note=note)
    back = outcome in (Outcome.NOT_SENT, Outcome.UNREACHED)
    assert (policy.check(after, asking, waiting=0) is ADMIT) is back


def test_what_has_no_declared_rate_has_no_bucket() -> None:
    plain = wish(Rules(queues=QUEUES))
    assert OfAction().key(plain) == OfTarget().key(plain) == ""


def test_an_action_shares_one_bucket_over_instances_and_versions_of_its_component() -> None:
    one, other = wish(rules(1)), wish(rules(1), instance="b", pin="c@2.0.0")
    assert OfAction().key(one) == OfAction().key(other)
    assert OfTarget().key(one) != OfTarget().key(other)
