"""What no claim covers: figures and deeds that nothing shows are suspicious, courtesy is not."""

import pytest

from acp_spec.model.calls import Claim
from gateway.rewards.grounding.detector import (
    LEXICAL,
    REVIEW_ABOVE,
    SENTENCES_MAX,
    uncovered,
)
from gateway.rewards.grounding.tests.records import attempt, session

BALANCE = attempt("get.balance", '{"balance":2345.60,"card":"card-0007"}')
PAID = attempt("set.payment", '{"done":true}')


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("Your balance is 2,345.60 GBP.", False),
        ("Your balance is 2,345.6 GBP on card-0007.", False),
        ("Your balance is 2,355.60 GBP.", True),
        ("The fee will be waived after 14 days.", True),
        ("Your card card-0009 is fine.", True),
        ("I have blocked the card for you.", True),
        ("Your card has been blocked.", True),
        ("Thank you for calling, have a nice day.", False),
        ("A colleague will take over from here.", False),
    ],
)
def test_a_sentence_is_suspicious_by_its_figures_and_deeds(answer: str, *, flagged: bool) -> None:
    trajectory = session(BALANCE, answer=answer)
    (found,) = LEXICAL.score(trajectory, uncovered(trajectory))
    assert (found.risk > REVIEW_ABOVE) is flagged, found.reason
    assert found.text == answer


def test_a_deed_is_believed_where_a_call_that_writes_has_succeeded() -> None:
    trajectory = session(PAID, answer="I have transferred it to your account.")
    (found,) = LEXICAL.score(trajectory, uncovered(trajectory))
    assert found.risk <= REVIEW_ABOVE


def test_sentences_that_claims_say_are_covered_and_the_rest_is_not() -> None:
    claims = (Claim(text="Your balance is 2345.60."), Claim(text="Card card-0007 is open."))
    answer = "Your balance is 2345.60. card card-0007 is open! You will get 500 more."
    assert uncovered(session(BALANCE, claims=claims, answer=answer)) == ["You will get 500 more."]


def test_what_is_no_sentence_is_not_looked_at() -> None:
    assert uncovered(session(BALANCE, answer="card-0007")) == []
    assert uncovered(session(BALANCE, answer="two words")) == []
    assert uncovered(session(BALANCE)) == []


def test_a_very_long_answer_costs_a_bounded_look() -> None:
    answer = "There are 17 of them. " * 500
    assert len(uncovered(session(BALANCE, answer=answer))) == SENTENCES_MAX
