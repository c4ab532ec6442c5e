"""Token buckets: never over the rate, what was not sent gives its token back, waits that fit."""

import math
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.outcome import Outcome
from gateway.governance.rate_limit import (
    GOES_BACK,
    KEPT_MOST,
    Bucket,
    OfAction,
    OfTarget,
    RateLimit,
)
from gateway.governance.rules import OnExcess, RateRules, Rules
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Defer, Refuse
from gateway.governance.wish import Closing, Wish


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
@pytest.mark.parametrize(
    ("policy", "goes_back"),
    [
        (OfAction(), (Outcome.NOT_SENT, Outcome.UNREACHED)),
        (OfTarget(), (Outcome.NOT_SENT,)),
    ],
    ids=["action", "target"],
)
def test_only_what_did_not_reach_the_target_gives_its_token_back(
    policy: RateLimit, goes_back: tuple[Outcome, ...], outcome: Outcome
) -> None:
    asking = wish(rules(10))
    state, note = policy.take(policy.fresh, asking)
    after = policy.observe(state, Closing(asking, outcome, 0.0), note=note)
    assert (policy.check(after, asking, waiting=0) is ADMIT) is (outcome in goes_back)


class Story:
    """Calls of one bucket: who was admitted, and who of them has been nothing after all."""

    def __init__(self, per_second: float, burst: int) -> None:
        self.policy = OfAction()
        self.state: Bucket = self.policy.fresh
        self.rules = rules(per_second, burst)
        self.interval_ms, self.burst = 1000.0 / per_second, burst
        self.out: list[Wish] = []
        self.kept_ms: list[float] = []

    def ask(self, now_ms: float) -> bool:
        asking = wish(self.rules, now_ms=now_ms)
        if self.policy.check(self.state, asking, waiting=0) is not ADMIT:
            return False
        self.state, _ = self.policy.take(self.state, asking)
        self.out.append(asking)
        self.kept_ms.append(now_ms)
        return True

    def close(self, which: int, outcome: Outcome, now_ms: float) -> None:
        gone = self.out.pop(which % len(self.out))
        self.state = self.policy.observe(self.state, Closing(gone, outcome, now_ms), note=0)
        if outcome in GOES_BACK:
            self.kept_ms.remove(gone.now_ms)

    def may_ask(self, now_ms: float) -> bool:
        """Reckoned from the beginning, with those alone who have not been nothing."""
        full_at_ms = -math.inf
        for at_ms in self.kept_ms:
            full_at_ms = max(full_at_ms, at_ms) + self.interval_ms
        return now_ms >= full_at_ms - (self.burst - 1) * self.interval_ms


@given(
    st.floats(0.5, 1_000),
    st.integers(1, 6),
    st.lists(
        st.tuples(
            st.floats(0, 3),
            st.sampled_from([None, None, Outcome.NOT_SENT, Outcome.UNREACHED, Outcome.SUCCEEDED]),
            st.integers(0, 9),
        ),
        max_size=60,
    ),
)
def test_tokens_that_come_back_late_let_nobody_through_that_the_rate_forbids(
    per_second: float, burst: int, moves: list[tuple[float, Outcome | None, int]]
) -> None:
    """Gaps in intervals. Over any stretch of time pass at most one burst and the rate, of those
    really sent; and nobody waits for a token of a call that was none."""
    story, now_ms = Story(per_second, burst), 0.0
    for gap, outcome, which in moves:
        now_ms += gap * story.interval_ms
        if outcome is not None and story.out:
            story.close(which, outcome, now_ms)
        may = story.may_ask(now_ms)
        assert story.ask(now_ms) is may
    sent = story.kept_ms
    for first, start_ms in enumerate(sent):
        for last in range(first, len(sent)):
            allowed = burst + (sent[last] - start_ms) * per_second / 1000
            assert last - first + 1 <= allowed * (1 + 1e-9) + 1e-6


def test_a_token_that_comes_back_to_a_bucket_that_has_filled_meanwhile_is_one_too_many() -> None:
    story = Story(10, burst=1)
    assert story.ask(0)
    assert story.ask(150), "the bucket was full again at 100"
    story.close(0, Outcome.NOT_SENT, 160)
    assert not story.ask(160), "two were sent within ten milliseconds, at ten a second"
    assert story.ask(250)


def test_of_a_token_that_comes_back_only_that_is_left_which_had_room() -> None:
    story = Story(10, burst=2)
    assert [story.ask(at_ms) for at_ms in (0, 50)] == [True, True]
    story.close(0, Outcome.NOT_SENT, 55)
    assert story.ask(60), "the second of two"
    assert not story.ask(149), "half of the token that came back found the bucket full, at 50"
    assert story.ask(150)


def test_a_burst_of_which_nothing_reached_the_target_leaves_a_full_bucket() -> None:
    story = Story(1, burst=100)
    assert all(story.ask(at_ms) for at_ms in range(100))
    assert not story.ask(100)
    for _ in range(100):
        story.close(7, Outcome.UNREACHED, 101)
    assert story.policy.is_idle(story.state, 101)
    assert sum(story.ask(102) for _ in range(200)) == 100


def test_of_very_many_calls_the_oldest_tokens_count_as_used() -> None:
    story = Story(1, burst=10 * KEPT_MOST)
    assert all(story.ask(0) for _ in range(10 * KEPT_MOST))
    assert len(story.state.calls) == KEPT_MOST
    for _ in range(10 * KEPT_MOST):
        story.close(0, Outcome.UNREACHED, 1)
    assert sum(story.ask(2) for _ in range(20 * KEPT_MOST)) == KEPT_MOST


def tries_a_second(policy: RateLimit, *, answered_after_ms: int, seconds: int) -> list[int]:
    """Of a target that nobody reaches, with ten a second, five at once, and always more who wait.

    No breaker stands before it: the tokens that come back are all that keeps the tries apart.
    """
    state, now_ms, asked = policy.fresh, 0.0, rules(10, burst=5)
    out: deque[Wish] = deque()
    tries = [0] * seconds
    while now_ms < 1000 * seconds:
        while out and now_ms >= out[0].now_ms + answered_after_ms:
            closing = Closing(out.popleft(), Outcome.UNREACHED, now_ms)
            state = policy.observe(state, closing, note=0)
        asking = wish(asked, now_ms=now_ms, is_head=True)
        if policy.check(state, asking, waiting=9) is ADMIT:
            state, _ = policy.take(state, asking)
            out.append(asking)
            tries[int(now_ms // 1000)] += 1
        else:
            now_ms += 1
    return tries


@pytest.mark.parametrize("policy", [OfAction(), OfTarget()], ids=["action", "target"])
def test_a_dead_target_is_not_tried_faster_and_faster(policy: RateLimit) -> None:
    """Each second brought ten more tokens, and none was ever used: 14 tries, 24, 34, ..."""
    first, *later = tries_a_second(policy, answered_after_ms=1_000, seconds=12)
    assert first == 14
    assert max(later) <= first + 1


def test_an_instance_that_refuses_at_once_is_tried_no_faster_than_its_card_says() -> None:
    first, *later = tries_a_second(OfTarget(), answered_after_ms=1, seconds=6)
    assert first == 14
    assert set(later) == {10}


def test_a_token_that_was_taken_at_another_rate_counts_as_used() -> None:
    story = Story(10, burst=20)
    assert story.ask(0)
    story.rules = rules(100, burst=20)  # of another version of the workflow
    assert story.ask(1)
    story.close(0, Outcome.NOT_SENT, 2)
    assert story.state.full_at_ms == 110
    story.close(0, Outcome.NOT_SENT, 2)
    assert story.state.full_at_ms == 100


def test_what_has_no_declared_rate_has_no_bucket() -> None:
    plain = wish(Rules(queues=QUEUES))
    assert OfAction().key(plain) == OfTarget().key(plain) == ""


def test_an_action_shares_one_bucket_over_instances_and_versions_of_its_component() -> None:
    one, other = wish(rules(1)), wish(rules(1), instance="b", pin="c@2.0.0")
    assert OfAction().key(one) == OfAction().key(other)
    assert OfTarget().key(one) != OfTarget().key(other)
