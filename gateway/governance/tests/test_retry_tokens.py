"""Retries as gRPC's A6 throttles them: failures drain, successes fill, at half they stop."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.outcome import Outcome
from gateway.governance.retry_tokens import DRAINS, RetryTokens
from gateway.governance.rules import RetryTokenRules, Rules
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Refuse
from gateway.governance.wish import Closing

RULES = Rules(queues=QUEUES, retries=RetryTokenRules(max_tokens=10, token_ratio=0.1))
FIRST, RETRY = wish(RULES), wish(RULES, is_retry=True)
POLICY = RetryTokens()


def after(*outcomes: Outcome) -> float:
    state = POLICY.fresh
    for outcome in outcomes:
        state, note = POLICY.take(state, FIRST)
        state = POLICY.observe(state, Closing(FIRST, outcome, 0.0), note=note)
    return state


def test_retries_stop_at_half_of_the_tokens_and_first_attempts_never() -> None:
    assert POLICY.check(after(*[Outcome.FAILED] * 4), RETRY, waiting=0) is ADMIT
    state = after(*[Outcome.FAILED] * 5)
    found = POLICY.check(state, RETRY, waiting=0)
    assert isinstance(found, Refuse)
    assert (found.error.reason, found.error.retryable) == ("BUDGET_EXHAUSTED", False)
    assert POLICY.check(state, FIRST, waiting=0) is ADMIT


def test_ten_successes_earn_one_retry() -> None:
    """A6's example: with ratio 0.1 a tenth of the calls may be retries while things go badly."""
    assert isinstance(POLICY.check(after(*[Outcome.FAILED] * 5), RETRY, waiting=0), Refuse)
    healed = after(*[Outcome.FAILED] * 5, *[Outcome.SUCCEEDED] * 1)
    assert POLICY.check(healed, RETRY, waiting=0) is ADMIT
    spent = after(*[Outcome.FAILED] * 6, *[Outcome.SUCCEEDED] * 10)
    assert isinstance(POLICY.check(spent, RETRY, waiting=0), Refuse)


@given(st.lists(st.sampled_from(list(Outcome)), max_size=200))
def test_the_bucket_is_never_fuller_than_full_nor_emptier_than_empty(
    outcomes: list[Outcome],
) -> None:
    model = 10.0
    for outcome in outcomes:
        if outcome in DRAINS:
            model = max(0.0, model - 1)
        elif outcome is Outcome.SUCCEEDED:
            model = min(10.0, model + 0.1)
    missing = after(*outcomes)
    assert abs((10.0 - missing) - model) < 1e-6
    assert POLICY.is_idle(missing, 0.0) is (missing == 0.0)


def test_in_an_outage_of_many_calls_nearly_none_is_a_retry() -> None:
    """Three levels that each retry three times send 27 calls where one would do."""
    state, sent = POLICY.fresh, 0
    for _ in range(1_000):
        for attempt in (FIRST, RETRY, RETRY):
            if POLICY.check(state, attempt, waiting=0) is not ADMIT:
                break
            sent += 1
            state = POLICY.observe(state, Closing(attempt, Outcome.FAILED, 0.0), note=0)
    assert sent <= 1_010
