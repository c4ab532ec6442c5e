"""Rewards as given: a judgement that could not be made is null with its reason, never a zero."""

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.calls import Reward
from acp_spec.model.enums import FeedbackKind, SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.session import Feedback, FeedbackTarget
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    FeedbackRow,
    OperationalReward,
    QualityReward,
    ReflectionRow,
    Trajectory,
)
from gateway.rewards.given import rewards

TIMEOUT = AcpError(code=Code.DEADLINE_EXCEEDED, reason="TIMEOUT", message="no answer in 5000 ms")


def _trajectory(**changes: object) -> Trajectory:
    fields = {
        "schema_version": SCHEMA_VERSION,
        "session_id": "s",
        "lineage_id": "l",
        "status": SessionStatus.SUCCEEDED,
        "opened_at": rfc3339(1000),
        "ended_at": rfc3339(1500),
        **changes,
    }
    return Trajectory(**fields)  # type: ignore[arg-type]


def _attempt(call_id: str, role: str = "EXECUTE", attempt: int = 1, **changes: object) -> Attempt:
    fields = {"call_id": call_id, "role": role, "attempt": attempt, "step": role.lower()}
    return Attempt(**{**fields, **changes})  # type: ignore[arg-type]


def _feedback(**changes: object) -> FeedbackRow:
    given = Feedback(kind=FeedbackKind.RATING, **changes)  # type: ignore[arg-type]
    return FeedbackRow(feedback=given, received_at=rfc3339(1))


def test_the_reflectors_rewards_are_stored_as_given() -> None:
    trajectory = _trajectory(
        reflector_rewards=(
            Reward(name="correct", value=0.0),
            Reward(name="x", value=-2.5, call_id="c"),
        ),
        reflections=(ReflectionRow(step="judge", call_id="r", verdict="ACCEPT"),),
        calls=(_attempt("r", "REFLECT"),),
    )
    assert rewards(trajectory).quality == (
        QualityReward(name="correct", value=0.0, source="reflector"),
        QualityReward(name="x", value=-2.5, call_id="c", source="reflector"),
    )


def test_a_reflector_that_failed_gives_null_with_the_reason_and_not_a_zero() -> None:
    trajectory = _trajectory(
        calls=(
            _attempt("r", "REFLECT", 1, error=TIMEOUT),
            _attempt("r", "REFLECT", 2, error=TIMEOUT),
            _attempt("e", error=TIMEOUT),
        )
    )
    (only,) = rewards(trajectory).quality
    assert only.value is None
    assert only.validity == "NOT_JUDGED"
    assert only.reason == "TIMEOUT: no answer in 5000 ms"
    assert (only.name, only.call_id) == ("reflect", "r")


def test_a_reflector_that_failed_first_and_judged_then_has_judged() -> None:
    trajectory = _trajectory(
        calls=(_attempt("r", "REFLECT", 1, error=TIMEOUT), _attempt("r", "REFLECT", 2)),
        reflections=(ReflectionRow(step="judge", call_id="r", verdict="ACCEPT"),),
        reflector_rewards=(Reward(name="correct", value=1.0),),
    )
    assert [one.value for one in rewards(trajectory).quality] == [1.0]


def test_a_judgement_never_reached_is_null_and_says_why() -> None:
    trajectory = _trajectory(
        status=SessionStatus.FAILED, error=TIMEOUT, calls=(_attempt("p", "PLAN"),)
    )
    assert rewards(trajectory).quality == ()
    (only,) = rewards(trajectory, reflect_steps=["judge"]).quality
    assert (only.value, only.validity, only.reason) == (None, "NOT_REACHED", "TIMEOUT")
    cancelled = _trajectory(status=SessionStatus.CANCELLED)
    (only,) = rewards(cancelled, reflect_steps=["judge"]).quality
    assert only.reason == "CANCELLED"


def test_a_session_still_open_has_no_judgement_missing_yet() -> None:
    trajectory = _trajectory(status=SessionStatus.RUNNING, ended_at="")
    assert rewards(trajectory, reflect_steps=["judge"]).quality == ()


def test_scores_of_people_are_rewards_and_comments_are_not() -> None:
    trajectory = _trajectory(
        feedback=(
            _feedback(score=0.5, author="ann", target=FeedbackTarget(call_id="c")),
            _feedback(score=0.0, target=FeedbackTarget(step="act", loop=2)),
            _feedback(comment="nice"),
        )
    )
    assert rewards(trajectory).quality == (
        QualityReward(name="rating", value=0.5, call_id="c", source="feedback:ann"),
        QualityReward(name="rating:act#2", value=0.0, source="feedback"),
    )


def _at(time_ms: int | None) -> str:
    return "" if time_ms is None else rfc3339(time_ms)


def test_how_it_went_is_counted() -> None:
    trajectory = _trajectory(
        fell_back=True,
        calls=(
            _attempt("a", sent_at=rfc3339(1001), ended_at=rfc3339(1100)),
            _attempt("a", attempt=2, sent_at=rfc3339(1101)),
            _attempt("b", reused=True),
        ),
    )
    assert rewards(trajectory).operational == OperationalReward(
        succeeded=True, fell_back=True, attempts=2, calls=2, duration_ms=500
    )


@given(
    status=st.sampled_from(SessionStatus),
    ended=st.none() | st.integers(0, 5000),
    answered=st.lists(st.none() | st.integers(0, 5000), max_size=3),
)
def test_the_operational_channel_is_never_null(
    status: SessionStatus, ended: int | None, answered: list[int | None]
) -> None:
    calls = tuple(_attempt(str(n), ended_at=_at(at)) for n, at in enumerate(answered))
    found = rewards(_trajectory(status=status, ended_at=_at(ended), calls=calls)).operational
    assert found.duration_ms >= 0
    assert sum([found.succeeded, found.failed, found.cancelled]) <= 1
