"""Which rules hold is decided in one place; without rules all is as it was given."""

from gateway.rewards.given import rewards
from gateway.rewards.scoring import Scorer, newest_ms
from gateway.rewards.tests.records import ENDED_MS, attempt, rules_of, said, trajectory

RULES = rules_of("- {name: stars, kind: outcome, each: feedback, value: feedback.score}\n")


def test_without_rules_rewards_are_as_given_and_with_them_the_vector_stands_beside() -> None:
    found = trajectory(calls=(attempt("c"),), feedback=(said(0.5),))
    scorer = Scorer()
    assert scorer.score(found) == rewards(found)
    scorer.rules = RULES
    scored = scorer.score(found)
    assert scored.quality == rewards(found).quality
    assert scored.vector is not None
    assert (scored.vector.rules, scored.vector.session.quality.value) == (RULES.ref, 0.5)


def test_as_of_is_the_newest_thing_that_the_trajectory_knows() -> None:
    assert newest_ms(trajectory()) == ENDED_MS
    assert newest_ms(trajectory(feedback=(said(0.5, delay_ms=77),))) == ENDED_MS + 77
