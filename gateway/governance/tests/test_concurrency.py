"""A bulkhead lets in no more than its limit, and whoever waits comes before whoever arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.concurrency import OfStepType, OfTarget
from gateway.governance.outcome import Outcome
from gateway.governance.rules import Rules, Slots
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Defer, Refuse
from gateway.governance.wish import Closing


def rules(limit: int, max_waiting: int = 2) -> Rules:
    slots = Slots(limit=limit, max_waiting=max_waiting)
    return Rules(queues=QUEUES | {"TOOL": slots}, target=slots)


@pytest.mark.parametrize("policy", [OfStepType(), OfTarget()], ids=["step_type", "target"])
def test_it_admits_up_to_its_limit_then_defers_then_refuses(policy: OfStepType | OfTarget) -> None:
    asking = wish(rules(2))
    assert policy.check(1, asking, waiting=0) is ADMIT
    assert policy.check(2, asking, waiting=1) == Defer("concurrency", policy.key(asking))
    found = policy.check(2, asking, waiting=2)
    assert isinstance(found, Refuse)
    assert (found.error.reason, found.error.boundary.value) == ("OVERLOADED", "GATEWAY")
    assert found.error.retry_after_ms == 500


def test_a_newcomer_does_not_pass_who_waits_and_a_head_does() -> None:
    policy = OfTarget()
    assert isinstance(policy.check(0, wish(rules(1)), waiting=1), Defer)
    assert policy.check(0, wish(rules(1), is_head=True), waiting=1) is ADMIT


def test_a_head_is_never_refused_because_of_those_behind_it() -> None:
    assert isinstance(OfTarget().check(1, wish(rules(1), is_head=True), waiting=99), Defer)


@given(st.lists(st.booleans(), max_size=50), st.integers(1, 5))
def test_what_is_taken_is_given_back_whatever_the_outcome(comes: list[bool], limit: int) -> None:
    policy, asking, state, running = OfTarget(), wish(rules(limit)), 0, 0
    outcomes = list(Outcome)
    for number, is_new in enumerate(comes):
        if is_new and policy.check(state, asking, waiting=0) is ADMIT:
            state, _ = policy.take(state, asking)
            running += 1
        elif running:
            closing = Closing(asking, outcomes[number % len(outcomes)], 0.0)
            state = policy.observe(state, closing, note=0)
            running -= 1
        assert state == running <= limit
    assert policy.is_idle(state, 0.0) is (running == 0)


def test_a_slot_is_given_back_once() -> None:
    with pytest.raises(AssertionError, match="given back once"):
        OfTarget().observe(0, Closing(wish(), Outcome.SUCCEEDED, 0.0), note=0)
