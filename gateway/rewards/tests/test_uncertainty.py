"""Where a person's look teaches most: parts from 0 to 1, and what each is made of."""

import pytest

from acp_spec.model.grounding import GroundedClaim, Grounding, GroundingVerdict
from acp_spec.model.trajectory import QualityReward, Rewards
from gateway.rewards.given import REFLECTOR
from gateway.rewards.raters import spreads
from gateway.rewards.tests.records import said, trajectory
from gateway.rewards.uncertainty import UNCLEAR_MAX, Doubt, doubts, unclear


def _parts(**changes: object) -> dict[Doubt, float]:
    return {one.doubt: one.amount for one in doubts(trajectory(**changes))}


def _claim(verdict: GroundingVerdict) -> GroundedClaim:
    return GroundedClaim(claim=0, verdict=verdict, reason="")


def test_a_session_that_nobody_judged_is_unclear_by_that_alone() -> None:
    assert _parts() == {Doubt.UNJUDGED: 1.0}


@pytest.mark.parametrize(
    ("verdict", "amount"),
    [
        (GroundingVerdict.SUPPORTED, None),
        (GroundingVerdict.CONTRADICTED, 0.5),
        (GroundingVerdict.NOT_CHECKABLE, 1.0),
    ],
)
def test_what_no_rule_could_decide_is_more_unclear_than_what_one_denied(
    verdict: GroundingVerdict, amount: float | None
) -> None:
    grounding = Grounding(claims=(_claim(GroundingVerdict.SUPPORTED), _claim(verdict)))
    assert _parts(grounding=grounding).get(Doubt.CLAIMS) == amount


def test_the_detectors_risk_and_the_raters_gap_are_parts_of_their_own() -> None:
    rows = (said(0.2), said(0.9, author="bo"))
    found = _parts(
        grounding=Grounding(risk=0.8), feedback=rows, rewards=Rewards(raters=spreads(rows))
    )
    assert found[Doubt.DETECTOR] == 0.8
    assert found[Doubt.RATERS] == pytest.approx(0.7)


def test_judgements_apart_are_unclear_and_people_count_as_raters_not_twice() -> None:
    def quality(*values: float | None, source: str = REFLECTOR) -> float | None:
        rows = tuple(QualityReward(name="q", value=one, source=source) for one in values)
        return _parts(rewards=Rewards(quality=rows)).get(Doubt.QUALITY)

    assert quality(0.0, 1.0) == 1.0
    assert quality(0.5, 0.5) is None
    assert quality(0.0, 1.0, source="feedback:ann") is None
    assert quality(0.0, None, 40.0) is None, "another scale says nothing of this one"


def test_no_part_is_over_1_and_their_sum_not_over_their_number() -> None:
    rows = (said(0.0), said(900.0, author="bo"))
    found = doubts(trajectory(grounding=Grounding(risk=7.0), rewards=Rewards(raters=spreads(rows))))
    assert all(0 < one.amount <= 1 for one in found)
    assert unclear(found) <= UNCLEAR_MAX
    assert [one.amount for one in found] == sorted((one.amount for one in found), reverse=True)
