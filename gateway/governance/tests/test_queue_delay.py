"""A burst may queue, a standing queue sheds, and who cannot end in time is told so at once."""

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.errors import Reason
from gateway.governance.queue_delay import (
    CALM,
    Newcomer,
    QueueDelay,
    Standing,
    check,
    held_back,
    hopeless,
    observe,
)
from gateway.governance.verdicts import ADMIT, Refuse

LAW = QueueDelay(target_ms=100, interval_ms=200)
SHEDDING = Standing(shedding=True, seen_ms=1_000)


def after(*looks: tuple[int, float]) -> Standing:
    """The state after looks of (time, delay)."""
    state = CALM
    for now_ms, delay_ms in looks:
        state = observe(state, LAW, delay_ms=delay_ms, now_ms=10_000 + now_ms)
    return state


def newcomer(wait_ms: float, **fields: float) -> Newcomer:
    plain = {"whole_ms": wait_ms + 50, "deadline_ms": 10_000, **fields}
    return Newcomer(wait_ms=wait_ms, **plain)  # type: ignore[arg-type]


def reason(verdict: object) -> str:
    assert isinstance(verdict, Refuse)
    return verdict.error.reason


def test_a_burst_shorter_than_the_interval_is_let_in() -> None:
    assert not after((0, 500), (100, 500), (190, 500)).shedding
    assert not after((0, 500), (150, 20), (250, 500), (400, 500)).shedding, "it went away between"


def test_a_delay_that_stands_for_an_interval_sheds() -> None:
    assert after((0, 150), (100, 150), (200, 150)).shedding


def test_shedding_ends_once_the_delay_has_stayed_away_for_an_interval() -> None:
    stood = ((0, 150), (200, 150))
    assert after(*stood, (250, 50), (300, 150), (420, 50)).shedding, "it came back between"
    assert not after(*stood, (250, 50), (450, 50)).shedding


def test_shedding_goes_on_while_somebody_has_to_be_refused() -> None:
    """Its own work kept the delay under the target: letting in everybody would begin anew."""
    state = after((0, 150), (200, 150), (250, 90))
    for now_ms in range(10_300, 12_000, 50):
        state = held_back(observe(state, LAW, delay_ms=90, now_ms=now_ms))
        assert state.shedding


def test_a_look_long_ago_says_nothing_of_the_time_between() -> None:
    assert not after((0, 500), (60_000, 500)).shedding
    assert not after((0, 500), (200, 500), (60_000, 500)).shedding


def test_while_shedding_whoever_would_wait_less_than_the_target_is_let_in() -> None:
    assert check(SHEDDING, LAW, newcomer=newcomer(99)) is ADMIT
    assert reason(check(SHEDDING, LAW, newcomer=newcomer(101))) == Reason.OVERLOADED.value
    assert check(CALM, LAW, newcomer=newcomer(101)) is ADMIT


def test_slots_of_long_calls_never_run_dry() -> None:
    """With calls of a second, a target of 100 ms would let nobody wait behind them."""
    for allowance in (0.5, 0.9, 2.0):
        one = newcomer(1_000, floor_ms=1_000, allowance=allowance)
        assert check(SHEDDING, LAW, newcomer=one) is ADMIT
    assert isinstance(check(SHEDDING, LAW, newcomer=newcomer(2_001, floor_ms=1_000)), Refuse)


def test_the_lower_share_or_priority_is_shed_first() -> None:
    assert isinstance(check(SHEDDING, LAW, newcomer=newcomer(60, allowance=0.5)), Refuse)
    assert check(SHEDDING, LAW, newcomer=newcomer(60, allowance=1.0)) is ADMIT
    crowding = check(SHEDDING, LAW, newcomer=newcomer(60, allowance=0.5, crowds=True))
    assert reason(crowding) == Reason.RATE_LIMITED.value


def test_who_could_not_end_in_time_is_refused_at_once_also_in_a_burst() -> None:
    late = newcomer(800, whole_ms=800, deadline_ms=1_000)
    verdict = check(CALM, LAW, newcomer=late)
    assert reason(verdict) == Reason.OVERLOADED.value
    assert isinstance(verdict, Refuse)
    assert verdict.error.retry_after_ms == 100


def test_a_deadline_that_no_load_is_the_reason_for_is_told_as_such_and_not_to_be_repeated() -> None:
    short = newcomer(800, whole_ms=850, least_ms=50, deadline_ms=49)
    for standing in (CALM, SHEDDING):
        verdict = check(standing, LAW, newcomer=short)
        assert isinstance(verdict, Refuse)
        assert verdict.error.reason == Reason.TIMEOUT.value
        assert not verdict.error.retryable
        assert verdict.error.retry_after_ms is None
        assert "deadline_ms: 49 ms are too short" in verdict.error.message
    fits = newcomer(800, whole_ms=850, least_ms=50, deadline_ms=50)
    assert reason(check(CALM, LAW, newcomer=fits)) == Reason.OVERLOADED.value


def test_a_deadline_that_no_queue_endangers_is_the_callers_own_affair() -> None:
    assert check(CALM, LAW, newcomer=newcomer(0, whole_ms=5_000, deadline_ms=1_000)) is ADMIT


def test_a_target_of_zero_sheds_nobody() -> None:
    off = QueueDelay(target_ms=0)
    assert check(SHEDDING, off, newcomer=newcomer(9_000, deadline_ms=100)) is ADMIT


def test_a_hopeless_call_is_not_to_be_repeated() -> None:
    refused = hopeless(10, needed_ms=50)
    assert not refused.error.retryable


Looks = st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1_000)), max_size=50)


@given(Looks)
def test_shedding_begins_and_ends_only_after_a_whole_interval(
    looks: list[tuple[int, float]],
) -> None:
    now_ms, state, since_ms = 10_000, CALM, None
    for passed_ms, delay_ms in looks:
        now_ms += passed_ms
        over = delay_ms > LAW.target_ms
        before, state = state, observe(state, LAW, delay_ms=delay_ms, now_ms=now_ms)
        if over == before.shedding:
            since_ms = None
        elif since_ms is None:
            since_ms = now_ms
        if state.shedding != before.shedding:
            assert since_ms is not None
            assert now_ms - since_ms >= LAW.interval_ms
            since_ms = None
