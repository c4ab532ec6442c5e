"""Sessions as they end: flagged ones are put up for certain, a fifth of all is a fair sample."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.grounding import Grounding, Review
from acp_spec.model.ids import unit_interval
from acp_spec.model.trajectory import FeedbackRow, Rewards, Trajectory
from gateway.rewards.raters import spreads
from gateway.rewards.review_draw import ReviewSlice
from gateway.rewards.review_stream import (
    CHANCE_MIN,
    PutUp,
    Tally,
    counted,
    is_settled,
    must_look,
    put_up,
    turn_of,
    uniform_chance,
)
from gateway.rewards.tests.records import said, trajectory

FLAGGED = Grounding(review=Review.WAITING, review_reasons=("x",), review_probability=1.0)


def _judged(*rows: FeedbackRow, **changes: object) -> Trajectory:
    return trajectory(feedback=rows, rewards=Rewards(raters=spreads(rows)), **changes)


def _stream(count: int, flagged_every: int) -> tuple[list[tuple[int, PutUp]], Tally]:
    """That many sessions, of which every so-many-th must be looked at."""
    tally, found = Tally(), list[tuple[int, PutUp]]()
    for number in range(count):
        session = trajectory(grounding=FLAGGED if number % flagged_every == 0 else None)
        chance = unit_interval("test", str(number))
        one = put_up(session, chance=chance, tally=tally)
        tally = counted(tally, one)
        if one is not None:
            found.append((number, one))
    return found, tally


@pytest.mark.parametrize("flagged_every", [5, 30, 100])
def test_a_fifth_of_what_is_put_up_is_uniform_however_much_is_flagged(flagged_every: int) -> None:
    found, tally = _stream(20_000, flagged_every)
    uniform = [number for number, one in found if one.slice is ReviewSlice.UNIFORM]
    assert len(uniform) == pytest.approx(0.2 * len(found), rel=0.15)
    assert tally.uniform == len(uniform)
    flagged = {number for number, _ in found if number % flagged_every == 0}
    assert len(flagged) == math.ceil(20_000 / flagged_every), (
        "every flagged one is put up, by either way"
    )


def test_rates_by_the_inverse_of_the_probability_are_those_of_all_sessions() -> None:
    found, _ = _stream(20_000, 10)
    total = math.fsum(1 / one.sampling_probability for _, one in found)
    flagged = math.fsum(1 / one.sampling_probability for number, one in found if number % 10 == 0)
    assert total == pytest.approx(20_000, rel=0.15)
    assert flagged / total == pytest.approx(0.1, abs=0.02)


def test_when_flagging_stops_the_share_comes_back_and_somebody_still_looks() -> None:
    tally = Tally(seen=10_000, unclear=2_000, uniform=500)
    for number in range(5_000):
        found = put_up(trajectory(), chance=unit_interval("late", str(number)), tally=tally)
        tally = counted(tally, found)
    assert tally.uniform < 700
    assert uniform_chance(tally) >= CHANCE_MIN


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_chance_is_always_one(seen: int, unclear: int, uniform: int) -> None:
    assert CHANCE_MIN <= uniform_chance(Tally(seen=seen, unclear=unclear, uniform=uniform)) <= 1


def test_a_probability_counts_both_ways_in() -> None:
    tally = Tally(seen=99, unclear=0, uniform=0)
    by_chance = uniform_chance(tally)
    sampled = Grounding(review=Review.NOT_NEEDED, review_probability=0.2)
    drawn = put_up(trajectory(grounding=sampled), chance=0.0, tally=tally)
    assert drawn is not None
    assert drawn.sampling_probability == pytest.approx(1 - (1 - by_chance) * 0.8)
    flagged = put_up(trajectory(grounding=FLAGGED), chance=0.99, tally=tally)
    assert flagged == PutUp(slice=ReviewSlice.UNCLEAR, sampling_probability=1.0)
    assert put_up(trajectory(), chance=0.99, tally=tally) is None


def test_two_reviews_that_contradict_want_a_third_and_users_one() -> None:
    review = FeedbackKind.VALIDATION
    two = (said(0.0, review), said(1.0, review, author="bo"))
    assert must_look(_judged(*two))
    assert not must_look(_judged(*two, said(0.0, review, author="cy")))
    assert not must_look(_judged(said(0.4, review), said(0.6, review, author="bo")))
    users = (said(0.0), said(1.0, author="bo"))
    assert must_look(_judged(*users))
    assert not must_look(_judged(*users, said(0.5, review, author="cy")))


def test_the_fair_sample_is_settled_only_by_a_judgement_that_was_drawn() -> None:
    review = FeedbackKind.VALIDATION
    volunteered = _judged(said(1.0, review))
    assert is_settled(volunteered, ReviewSlice.UNCLEAR)
    assert not is_settled(volunteered, ReviewSlice.UNIFORM)
    drawn = _judged(said(1.0, review), said(1.0, review, author="bo", sampling_probability=0.1))
    assert is_settled(drawn, ReviewSlice.UNIFORM)
    assert not is_settled(_judged(said(1.0)), ReviewSlice.UNCLEAR), "a rating is no review"
    assert not is_settled(_judged(said(1.0, review), grounding=FLAGGED), ReviewSlice.UNCLEAR)


def test_of_five_that_are_handed_out_one_is_of_the_fair_sample() -> None:
    turns = [turn_of(number) for number in range(50)]
    assert turns.count(ReviewSlice.UNIFORM) == 10
    assert turns[:5].count(ReviewSlice.UNIFORM) == 1
