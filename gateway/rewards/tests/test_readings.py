"""Whose reading of a comment counts: a reflector's where it gave one; its failure is no grade."""

import msgspec

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.reward_vector import Correction, Validity
from acp_spec.model.trajectory import FeedbackRow
from gateway.rewards.readings import (
    UNREADABLE,
    KeptReading,
    ReadCorrection,
    ReflectorReading,
    kept_as,
    readings,
)
from gateway.rewards.tests.records import AS_OF_MS, rules_of, said, trajectory
from gateway.rewards.vector import vector

COMMENT = said(None, FeedbackKind.COMMENT, comment="the fee is wrong")
RULES = rules_of("""
- name: complaints
  kind: outcome
  each: comment
  value: "comment.tags.exists(t, t == 'WRONG') ? 0.0 : 1.0"
""")


def _kept(**fields: object) -> FeedbackRow:
    kept = KeptReading(of=COMMENT.feedback.feedback_id, by="llm@1.0.0", **fields)  # type: ignore[arg-type]
    return FeedbackRow(feedback=kept_as(COMMENT.feedback, kept), received_at=COMMENT.received_at)


def test_rules_read_a_comment_until_a_reflector_has_and_then_its_reading_counts() -> None:
    (by_rules,) = readings([COMMENT])
    assert (by_rules.tags, by_rules.by) == (("WRONG",), "rules")
    reading = ReflectorReading(
        tags=("WRONG_AMOUNT",), corrections=(ReadCorrection(right="3", wrong="5"),)
    )
    (by_llm,) = readings([COMMENT, _kept(reading=reading)])
    assert (by_llm.tags, by_llm.by) == (("WRONG_AMOUNT",), "llm@1.0.0")
    assert by_llm.corrections == (Correction(right="3", wrong="5"),)


def test_a_reflector_that_failed_is_not_judged_and_never_a_zero() -> None:
    rows = (COMMENT, _kept(failed="TIMEOUT: no answer in 5000 ms"))
    (reading,) = readings(rows)
    assert reading.validity is Validity.NOT_JUDGED
    found = vector(trajectory(feedback=rows), RULES, as_of_ms=AS_OF_MS)
    assert found.session.quality.value is None
    assert found.session.quality.reason == "comment: TIMEOUT: no answer in 5000 ms"
    spoilt = msgspec.structs.replace(rows[1].feedback, comment="{")
    (reading,) = readings([COMMENT, FeedbackRow(feedback=spoilt, received_at="")])
    assert (reading.validity, reading.reason) == (Validity.NOT_JUDGED, UNREADABLE)


def test_a_comment_is_judged_by_its_tags_once_together_with_its_score() -> None:
    found = vector(trajectory(feedback=(COMMENT,)), RULES, as_of_ms=AS_OF_MS)
    assert found.session.quality.value == 0.0
    both = said(0.9, comment="wrong")
    stars = "- {name: stars, kind: outcome, each: feedback, value: feedback.score}\n"
    text = stars + "- {name: words, kind: outcome, each: comment, value: 0}\n"
    found = vector(trajectory(feedback=(both,)), rules_of(text), as_of_ms=AS_OF_MS)
    assert [entry.rule for entry in found.entries] == ["stars"]


def test_what_the_gateway_itself_says_is_nobodys_opinion() -> None:
    own = said(None, FeedbackKind.COMMENT, author="gateway/sla", comment="wrong")
    assert readings([own]) == ()
