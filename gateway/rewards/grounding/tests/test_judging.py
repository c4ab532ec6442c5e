"""A whole session: what is charged, who must look, and what a review changes."""

import pytest
from msgspec.structs import replace

from acp_spec.model.calls import Claim
from acp_spec.model.grounding import Grounding, GroundingVerdict, Review
from acp_spec.model.payload import payload
from acp_spec.model.plan import SubGoal
from acp_spec.model.trajectory import Trajectory
from gateway.engine.rejections import OUTPUT_CHECK
from gateway.rewards.grounding.charging import grounding_reward
from gateway.rewards.grounding.judging import CLAIMS_MAX, SAMPLED, grounding
from gateway.rewards.grounding.tests.records import attempt, planned, review, session

CALL = attempt("get.balance", '{"balance":2345.67,"note":"hello"}')
SOURCE = ("/calls/get.balance/output/balance",)
TRUE = Claim(text="It is 2345.67.", sources=SOURCE)
FALSE = Claim(text="It is 2345.76.", sources=SOURCE)
VAGUE = Claim(text="It is rather a lot.", sources=SOURCE)
NOWHERE = Claim(text="It is 2345.67.", sources=("/calls/other/output",))


def _found(trajectory: Trajectory) -> Grounding:
    found = grounding(trajectory)
    assert found is not None
    return found


def test_claims_that_stand_ask_for_nobody() -> None:
    found = _found(session(CALL, claims=(TRUE,)))
    assert [one.verdict for one in found.claims] == [GroundingVerdict.SUPPORTED]
    assert (found.penalties, found.review) == (0, Review.NOT_NEEDED)
    assert grounding_reward(found)[0].value == 1.0


@pytest.mark.parametrize("claim", [FALSE, NOWHERE])
def test_a_denied_claim_and_a_missing_source_are_charged_and_a_person_looks(claim: Claim) -> None:
    found = _found(session(CALL, claims=(TRUE, claim)))
    assert found.penalties == 1
    assert (found.review, found.review_probability) == (Review.WAITING, 1.0)
    assert found.review_reasons[0].startswith("claim 1: ")
    assert grounding_reward(found)[0].value == 0.5


def test_what_cannot_be_checked_costs_nothing_and_is_drawn_as_often_as_promised() -> None:
    vague = session(CALL, claims=(VAGUE,))
    found = [_found(replace(vague, session_id=f"S{number}")) for number in range(2000)]
    assert {one.penalties for one in found} == {0}
    assert {one.review_probability for one in found} == {SAMPLED}
    drawn = sum(one.review is Review.WAITING for one in found)
    assert 0.17 < drawn / len(found) < 0.23
    again = [_found(replace(vague, session_id=f"S{number}")) for number in range(2000)]
    assert again == found, "the same session is always drawn alike"


def test_a_reward_is_null_with_a_reason_where_nothing_could_be_judged() -> None:
    (reward,) = grounding_reward(_found(session(CALL, claims=(VAGUE,))))
    assert reward.value is None
    assert (reward.validity, reward.reason) == ("NOT_JUDGED", "none of its claims could be checked")


def test_a_sub_goal_without_a_call_is_charged_and_leaves_training_alone() -> None:
    """It is a fact, not a suspicion: nobody needs to look, and training shall learn from it."""
    plan = (planned(SubGoal(id="x", action="get.rates")),)
    found = _found(session(CALL, plan=plan, claims=(TRUE,)))
    assert (found.penalties, found.review) == (1, Review.NOT_NEEDED)
    assert grounding_reward(found)[0].value == 0.5


def test_a_suspicious_sentence_is_not_charged_but_a_person_looks() -> None:
    found = _found(session(CALL, answer="You will get 500 GBP more."))
    assert (found.penalties, found.review) == (0, Review.WAITING)
    assert found.risk > 0.7
    assert found.sentences[0].text == "You will get 500 GBP more."
    assert found.detector == "lexical-1"


def test_a_review_lets_the_session_in_with_its_label() -> None:
    flagged = session(CALL, claims=(FALSE,))
    for call_id in ("", "judge"):
        found = _found(replace(flagged, feedback=(review(0.25, call_id=call_id),)))
        assert (found.review, found.label) == (Review.DONE, 0.25)
    later = review(1.0, author="bob", time="2026-12-01T00:00:00.000Z")
    assert _found(replace(flagged, feedback=(later, review(0.25)))).label == 1.0


def test_neither_the_gateways_own_word_nor_one_without_a_score_is_a_review() -> None:
    flagged = session(CALL, claims=(FALSE,))
    for row in (review(0.0, author=OUTPUT_CHECK), review(None), review(1.0, call_id="get.balance")):
        found = _found(replace(flagged, feedback=(row,)))
        assert (found.review, found.label) == (Review.WAITING, None)


def test_an_answer_of_the_workflows_own_is_no_invention() -> None:
    made_up = session(CALL, answer="You will get 500 GBP more.")
    assert grounding(replace(made_up, fell_back=True)) is None


def test_a_running_session_and_one_that_says_nothing_have_no_grounding() -> None:
    assert grounding(replace(session(CALL, claims=(TRUE,)), ended_at="")) is None
    assert grounding(replace(session(CALL), output=payload(b'{"total":5}'))) is None
    assert grounding_reward(None) == ()


def test_more_claims_than_one_answer_holds_are_left_to_a_person() -> None:
    found = _found(session(CALL, claims=(TRUE,) * (CLAIMS_MAX + 1)))
    assert found.claims[-1].verdict is GroundingVerdict.NOT_CHECKABLE
    assert len(found.claims) == CLAIMS_MAX + 1
    long = replace(TRUE, text="It is 2345.67." + " Really." * 60)
    found = _found(session(CALL, claims=(long,) * 20))
    assert found.claims[0].verdict is GroundingVerdict.SUPPORTED
    assert found.claims[-1].verdict is GroundingVerdict.NOT_CHECKABLE
    assert found.penalties == 0


def test_of_an_attempt_that_lost_a_race_nothing_is_missing() -> None:
    lost = replace(CALL, attempt=2, output=payload(b""))
    assert _found(session(CALL, lost, claims=(TRUE,))).penalties == 0
