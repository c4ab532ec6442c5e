"""Shares between tenants, levels of priority, and age that outweighs them."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance import sharing
from gateway.governance.sharing import Crowd, allowance, crowds, rank_ms


def test_age_decides_among_equals() -> None:
    assert rank_ms(1_000, 0) < rank_ms(1_001, 0)


def test_work_that_has_begun_goes_before_work_that_has_not() -> None:
    assert rank_ms(1_500, 0, under_way=True) < rank_ms(1_000, 0)


def test_a_plan_of_a_new_session_does_not_go_before_work_under_way() -> None:
    assert rank_ms(1_000, 0, under_way=True) < rank_ms(1_000, 0, step_priority=1)


@given(st.integers(-(2**31), 2**31), st.integers(-(2**31), 2**31))
def test_whatever_is_asked_for_nobody_is_passed_for_longer_than_the_levels_last(
    low: int, high: int
) -> None:
    most_ms = (4 * sharing.PRIORITY_MAX + sharing.UNDER_WAY) * sharing.LEVEL_MS
    waited = rank_ms(0, low, step_priority=-10)
    newcomer = rank_ms(most_ms + 1, high, step_priority=10, under_way=True)
    assert waited < newcomer


def test_who_holds_less_than_its_share_is_let_in_where_others_are_not() -> None:
    crowding = Crowd(own=90, total=100, total_weight=2.0)
    modest = Crowd(own=10, total=100, total_weight=2.0)
    assert allowance(crowding, 0) < 1 < allowance(modest, 0)
    assert (crowds(crowding), crowds(modest)) == (True, False)


def test_alone_nobody_crowds() -> None:
    alone = Crowd(own=50, total=50)
    assert allowance(alone, 1) == 1.0
    assert not crowds(alone)


def test_a_weight_is_a_larger_share() -> None:
    assert Crowd(own=75, total=100, weight=3.0, total_weight=4.0).share == 75


def test_lower_priority_is_let_into_a_shorter_queue() -> None:
    alone = Crowd(own=50, total=50)
    assert [allowance(alone, priority) for priority in (-9, -1, 0, 1, 9)] == [0.5, 0.7, 0.9, 1, 1]


@given(st.integers(0, 500), st.integers(1, 500), st.integers(-9, 9), st.integers(-9, 9))
def test_no_priority_gets_a_tenant_ahead_of_one_below_its_share(
    mine: int, theirs: int, my_priority: int, their_priority: int
) -> None:
    """One that calls everything urgent would starve the others."""
    total = mine + theirs
    me = Crowd(own=mine, total=total, total_weight=2.0)
    them = Crowd(own=theirs, total=total, total_weight=2.0)
    if me.own < me.share:
        assert allowance(me, my_priority) >= allowance(them, their_priority)
