"""A target that asked for a pause gets it; afterwards its calls come one by one."""

from gateway.governance.outcome import Outcome
from gateway.governance.push_back import MAX_MS, PACE_MS, PushBack
from gateway.governance.tests.wishes import wish
from gateway.governance.verdicts import ADMIT, Defer, Refuse
from gateway.governance.wish import Closing

POLICY = PushBack()


def told(retry_after_ms: int, outcome: Outcome = Outcome.THROTTLED) -> float:
    closing = Closing(wish(), outcome, 0.0, retry_after_ms)
    return POLICY.observe(POLICY.fresh, closing, note=0)


def test_nothing_is_sent_before_the_pause_is_over() -> None:
    state = told(300)
    assert POLICY.check(state, wish(), waiting=0) == Defer("push_back", "push_back:a/x", 300.0)
    assert POLICY.check(state, wish(now_ms=300.0), waiting=0) is ADMIT


def test_a_pause_longer_than_the_time_left_is_refused_with_the_time_to_come_back() -> None:
    found = POLICY.check(told(5_000), wish(patience_ms=1_000), waiting=0)
    assert isinstance(found, Refuse)
    assert (found.error.reason, found.error.retry_after_ms) == ("RATE_LIMITED", 5_000)


def test_who_waited_goes_one_by_one_and_not_all_at_once() -> None:
    state, now_ms, starts = told(300), 300.0, []
    for _ in range(20):
        found = POLICY.check(state, wish(now_ms=now_ms, is_head=True), waiting=9)
        if isinstance(found, Defer):
            now_ms = found.until_ms
        state, _ = POLICY.take(state, wish(now_ms=now_ms, is_head=True))
        starts.append(now_ms)
    assert starts == [300.0 + PACE_MS * number for number in range(20)]


def test_only_a_throttling_that_names_a_time_pauses_and_never_longer_than_the_bound() -> None:
    assert told(0) == POLICY.fresh
    assert told(300, Outcome.FAILED) == POLICY.fresh
    assert told(10 * MAX_MS) == MAX_MS
    assert POLICY.is_idle(told(300), 300.0)
