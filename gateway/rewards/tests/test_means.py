"""A mean says what is missing, and a rate counts who was drawn and not who shouted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import Boundary
from gateway.rewards.means import Mean, Means, Rates
from gateway.rewards.tests.records import AS_OF_MS, attempt, failure, rules_of, said, trajectory
from gateway.rewards.vector import vector

RULES = rules_of("""
- {name: stars, kind: outcome, each: feedback, value: feedback.score}
- {name: worked, kind: outcome, each: call, part: step, value: "call.succeeded ? 1.0 : 0.0"}
- {name: tries, kind: cost, each: attempt, part: step, cost: 0.5}
""")


@given(scores=st.lists(st.none() | st.floats(-1, 1), min_size=1, max_size=8))
def test_every_mean_shows_the_share_that_could_not_be_judged(scores: list[float | None]) -> None:
    means = Means()
    for score in scores:
        rows = () if score is None else (said(score),)
        means.add("w@1.0.0", vector(trajectory(feedback=rows), RULES, as_of_ms=AS_OF_MS))
    (found,) = [one for one in means.rows if one.of == "session"]
    judged = [score for score in scores if score is not None]
    assert (found.judged, found.missing) == (len(judged), len(scores) - len(judged))
    assert found.missing_share == found.missing / len(scores)
    assert found.value == (pytest.approx(sum(judged) / len(judged)) if judged else None)


def test_a_version_that_is_judged_less_often_does_not_look_as_good_as_one_that_is_judged() -> None:
    means = Means()
    for number, version in enumerate(["1.0.0", "2.0.0", "2.0.0"]):
        broken = failure(Boundary.DOWNSTREAM) if number == 2 else None
        call = attempt("c", component_version=version, error=broken)
        found = trajectory(calls=(call,))
        means.add("w@1.0.0", vector(found, RULES, as_of_ms=AS_OF_MS))
    steps = [one for one in means.rows if one.of == "step"]
    assert [(one.version, one.value, one.missing_share) for one in steps] == [
        ("tools@1.0.0", 1.0, 0.0),
        ("tools@2.0.0", 1.0, 0.5),
    ]
    assert {one.operational for one in steps} == {-0.5}


def test_a_mean_without_its_missing_share_cannot_be_built() -> None:
    assert "missing_share" in [one.name for one in msgspec.structs.fields(Mean) if one.required]


def test_a_rate_undoes_the_way_in_which_its_judgements_were_drawn() -> None:
    """Sad ones are looked at ten times as often; the share of happy ones is 90 % all the same."""
    rates = Rates()
    for number in range(100):
        is_sad = number < 10
        if is_sad or number % 10 == 0:
            row = said(0.0 if is_sad else 1.0, sampling_probability=1.0 if is_sad else 0.1)
            rates.add(trajectory(feedback=(row,)))
    for _ in range(500):
        rates.add(trajectory(feedback=(said(0.0, author="shouter"),)))
    (found,) = rates.rows
    assert found.value == pytest.approx(0.9)
    assert (found.drawn, found.volunteered) == (19, 500)


def test_a_rate_of_volunteers_alone_is_none() -> None:
    rates = Rates()
    rates.add(trajectory(feedback=(said(1.0), said(None, author="bo", comment="x"))))
    (found,) = rates.rows
    assert (found.value, found.drawn, found.volunteered) == (None, 0, 1)
