"""Who is drawn for review: a fair fifth, the unclear oftener, each with a known probability."""

import math

import pytest

from acp_spec.model.enums import SessionStatus
from gateway.rewards.review_draw import Candidate, ReviewSlice, candidate_of, draw
from gateway.rewards.scoring import Scorer
from gateway.rewards.tests.records import rules_of, said, trajectory

CROWD = [Candidate(session_id=f"s{n}", unclear=1.0 if n % 10 == 0 else 0.0) for n in range(5_000)]


def test_a_fifth_is_drawn_uniformly_and_the_rest_where_it_is_unclear() -> None:
    found = draw(CROWD, 500, seed="x")
    assert len(found) == pytest.approx(500, rel=0.1)
    uniform = [one for one in found if one.slice is ReviewSlice.UNIFORM]
    assert len(uniform) == pytest.approx(100, rel=0.3)
    clear = [one for one in uniform if not one.unclear]
    assert len(clear) / len(uniform) == pytest.approx(0.9, abs=0.1), "as in the whole crowd"
    assert all(one.unclear for one in found if one.slice is ReviewSlice.UNCLEAR)
    assert found[0].unclear >= found[-1].unclear


def test_rates_by_the_inverse_of_the_probability_are_those_of_the_whole_crowd() -> None:
    """Every unclear session is bad: among the drawn they are most, in the rate they are a tenth."""
    found = draw(CROWD, 500, seed="y")
    total = math.fsum(1 / one.sampling_probability for one in found)
    bad = math.fsum(1 / one.sampling_probability for one in found if one.unclear)
    assert bad / total == pytest.approx(0.1, abs=0.03)
    assert sum(one.unclear > 0 for one in found) / len(found) > 0.5


def test_nobody_is_left_without_a_chance_and_none_has_more_than_certainty() -> None:
    drawn = draw(CROWD[:20], 1_000, seed="z")
    assert len(drawn) == 20
    assert {one.sampling_probability for one in drawn} == {1.0}
    assert draw([], 10, seed="z") == ()
    clear = [Candidate(session_id=f"c{n}", unclear=0.0) for n in range(1_000)]
    found = draw(clear, 100, seed="z")
    assert {one.slice for one in found} == {ReviewSlice.UNIFORM}
    assert {one.sampling_probability for one in found} == {0.1}


def test_a_seed_draws_the_same_again_and_a_larger_number_draws_them_too() -> None:
    few = {one.session_id for one in draw(CROWD, 200, seed="x")}
    assert few == {one.session_id for one in draw(CROWD, 200, seed="x")}
    assert few < {one.session_id for one in draw(CROWD, 400, seed="x")}
    assert few != {one.session_id for one in draw(CROWD, 200, seed="y")}


def test_what_raters_disagree_on_or_nobody_judged_is_unclear_and_what_was_drawn_is_done() -> None:
    rules = rules_of("- {name: stars, kind: outcome, each: feedback, value: feedback.score}\n")

    def unclear(*rows: object, **changes: object) -> float | None:
        found = trajectory(feedback=rows, **changes)
        scored = trajectory(feedback=rows, rewards=Scorer(rules).score(found), **changes)
        candidate = candidate_of(scored)
        return None if candidate is None else candidate.unclear

    assert unclear() == 1.0
    assert unclear(said(0.5)) == 0.0
    assert unclear(said(0.0), said(1.0, author="bo")) == 1.0
    assert unclear(said(0.5, comment="zła")) == 1.0
    assert unclear(said(0.5, sampling_probability=0.2)) is None
    assert unclear(status=SessionStatus.RUNNING, ended_at="") is None
