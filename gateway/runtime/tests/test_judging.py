"""Feedback as it comes in: bounded, its sampling stated, and the last by its time stands."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import Feedback
from acp_spec.model.times import parse_rfc3339, rfc3339
from gateway.engine.events import FeedbackGiven
from gateway.engine.states import FeedbackState
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, ONE_ACTION, troupe, workflow_of
from gateway.engine.trajectories import trajectory
from gateway.runtime.judging import FEEDBACK_MAX, SKEW_MS, complete, recorder_of, takes
from gateway.runtime.principal import DEFAULT_TENANT, LOCAL, TOKEN_SUBJECT, Principal

ANN = Principal(tenant=DEFAULT_TENANT, scopes=frozenset(), subject=f"{TOKEN_SUBJECT}ann")


def _rating(score: float = 0.5, **fields: object) -> Feedback:
    return Feedback(kind=FeedbackKind.RATING, score=score, **fields)  # type: ignore[arg-type]


def _taken(number: int) -> FeedbackState:
    event = FeedbackGiven(at_ms=1, feedback=_rating(), feedback_id=f"f-{number}")
    return FeedbackState(given=event, version="1.1.1")


def test_the_same_id_is_not_taken_twice_even_when_no_more_is_taken() -> None:
    log = tuple(_taken(number) for number in range(FEEDBACK_MAX))
    assert takes(log[:-1], "f-new")
    assert not takes(log, "f-7")
    with pytest.raises(AcpFailure) as refused:
        takes(log, "f-new")
    assert refused.value.error.reason == "TOO_MUCH_FEEDBACK"
    assert str(FEEDBACK_MAX) in refused.value.error.message


@pytest.mark.parametrize("probability", [0.0, -0.2, 1.000001, 1e300, 5e-324])
def test_a_probability_that_is_none_is_refused(probability: float) -> None:
    play = _play()
    asked = _rating(sampling_probability=probability)
    with pytest.raises(AcpFailure) as refused:
        complete(play.state, asked, by=LOCAL, at_ms=1)
    assert refused.value.error.reason == "INVALID_REQUEST"
    assert "sampling_probability" in refused.value.error.message


@pytest.mark.parametrize("score", [1.7e308, -1.7e308, 1.000001e12])
def test_a_score_so_large_that_sums_of_it_are_no_numbers_is_refused(score: float) -> None:
    """Two such ones of a session, and its trajectory could never be written."""
    play = _play()
    with pytest.raises(AcpFailure) as refused:
        complete(play.state, _rating(score), by=LOCAL, at_ms=1)
    assert refused.value.error.reason == "INVALID_REQUEST"
    assert "score" in refused.value.error.message
    assert complete(play.state, _rating(-1e12), by=LOCAL, at_ms=1).score == -1e12


def test_the_sampling_probability_is_in_the_record() -> None:
    play = _play()
    _give(play, _rating(sampling_probability=0.2))
    (row,) = trajectory(play.state).feedback
    assert row.feedback.sampling_probability == 0.2


@given(
    said=st.lists(
        st.tuples(st.integers(-3 * SKEW_MS, 3 * SKEW_MS), st.sampled_from(["ann", "bo"])),
        min_size=1,
        max_size=6,
    )
)
@example(said=[(3 * SKEW_MS, "ann"), (2 * SKEW_MS, "ann")])
def test_of_each_author_the_last_by_the_clamped_time_stands_then_by_sequence(
    said: list[tuple[int, str]],
) -> None:
    play = _play()
    best: dict[str, tuple[int, int]] = {}
    for number, (offset_ms, author) in enumerate(said):
        time = rfc3339(max(0, play.now_ms + offset_ms))
        _give(play, _rating(float(number), author=author, time=time))
        written_ms = parse_rfc3339(time)
        assert written_ms is not None
        meant = (min(written_ms, play.now_ms + SKEW_MS), number)
        best[author] = max(best.get(author, (-1, -1)), meant)
    found = {row.feedback.author: row.feedback.score for row in trajectory(play.state).feedback}
    assert found == {author: float(number) for author, (_, number) in best.items()}
    assert len(play.state.feedback_log) == len(said), "nothing that was said is dropped"


@pytest.mark.parametrize("caller", [ANN, LOCAL])
def test_nobody_speaks_as_the_token_of_another(caller: Principal) -> None:
    with pytest.raises(AcpFailure) as refused:
        complete(_play().state, _rating(author=f"{TOKEN_SUBJECT}bo"), by=caller, at_ms=1)
    assert refused.value.error.reason == "PERMISSION_DENIED"
    assert f"{TOKEN_SUBJECT}bo" in refused.value.error.message


@pytest.mark.parametrize(
    ("caller", "author", "by", "recorder"),
    [
        (ANN, "", ANN.subject, ""),
        (ANN, ANN.subject, ANN.subject, ""),
        (ANN, "a customer", "a customer", ANN.subject),
        (LOCAL, "", LOCAL.subject, ""),
        (LOCAL, "a customer", "a customer", ""),
    ],
)
def test_a_name_of_somebody_else_is_kept_with_the_token_that_said_it(
    caller: Principal, author: str, by: str, recorder: str
) -> None:
    full = complete(_play().state, _rating(author=author), by=caller, at_ms=1)
    assert (full.author, recorder_of(full, by=caller)) == (by, recorder)


def _give(play: Play, feedback: Feedback) -> None:
    full = complete(play.state, feedback, by=LOCAL, at_ms=play.now_ms)
    event = FeedbackGiven(at_ms=play.now_ms, feedback=full, feedback_id=full.feedback_id)
    play.feed(event)


def _play() -> Play:
    workflow = workflow_of(ONE_ACTION % "read")
    return Play(workflow, CATALOG, Cast(component=troupe())).open().run()
