"""A whole session's grounding: its claims, its sub-goals, what nothing covers, and who must look.

A person looks where a source denies a claim or is missing, where the detector's risk is too high,
and at a sample of what could not be checked. The sample is drawn from the session's id, so that the
same session is always drawn alike. A review is a VALIDATION with a score, by anyone but the gateway
itself; it is for the whole session, or for the call that made the claims.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from acp_spec.model.calls import SettledCall
from acp_spec.model.enums import FeedbackKind, SessionStatus, StepStatus
from acp_spec.model.grounding import (
    GroundedClaim,
    Grounding,
    GroundingVerdict,
    Review,
    UnsourcedSentence,
)
from acp_spec.model.trajectory import Attempt, FeedbackRow, Trajectory
from gateway.engine.rejections import OUR_FEEDBACK
from gateway.rewards.grounding.claims import judged
from gateway.rewards.grounding.detector import LEXICAL, REVIEW_ABOVE, Detector, uncovered
from gateway.rewards.grounding.findings import Standing
from gateway.rewards.grounding.sub_goals import sub_goals_without_calls
from gateway.rewards.settled import settled

SAMPLED: Final = 0.2
"""Share of sessions with something that could not be checked which a person looks at."""
CLAIMS_MAX: Final = 64
"""More claims than these are not one answer; the rest is left to a person."""
CHARACTERS_MAX: Final = 6000
"""Of all claims' sentences together: judging runs beside the sessions and must end soon."""

VERDICT: Final = {
    Standing.STANDS: GroundingVerdict.SUPPORTED,
    Standing.AGAINST: GroundingVerdict.CONTRADICTED,
    Standing.OPEN: GroundingVerdict.NOT_CHECKABLE,
}


def grounding(trajectory: Trajectory, detector: Detector = LEXICAL) -> Grounding | None:
    """What the guard finds; None while the session runs, and where there is nothing to judge."""
    if not trajectory.ended_at:
        return None
    claims = tuple(_claims(trajectory))
    without = sub_goals_without_calls(trajectory)
    own_words = [] if _is_ours(trajectory) else uncovered(trajectory)
    sentences = tuple(detector.score(trajectory, own_words)) if own_words else ()
    if not claims and not without and not sentences:
        return None
    risk = max((sentence.risk for sentence in sentences), default=0.0)
    reasons = tuple(_reasons(claims, sentences))
    probability = _probability(trajectory, claims, certain=bool(reasons))
    if not reasons and _is_drawn(trajectory.session_id, probability):
        reasons = ("drawn: something in it could not be checked",)
    review = review_of(trajectory) if reasons else None
    return Grounding(
        claims=claims,
        sub_goals=without,
        sentences=tuple(one for one in sentences if one.risk > REVIEW_ABOVE),
        risk=risk,
        detector=detector.name if sentences else "",
        penalties=sum(_is_penalised(one) for one in claims)
        + sum(not one.excused for one in without),
        review=Review.NOT_NEEDED if not reasons else Review.DONE if review else Review.WAITING,
        review_reasons=reasons,
        review_probability=probability,
        label=review.feedback.score if review else None,
    )


def _claims(trajectory: Trajectory) -> Iterator[GroundedClaim]:
    if not trajectory.claims:
        return
    calls = calls_of(trajectory)
    characters = 0
    for index, claim in enumerate(trajectory.claims):
        characters += len(claim.text)
        if index >= CLAIMS_MAX or characters > CHARACTERS_MAX:
            reason = f"only {CLAIMS_MAX} claims of {CHARACTERS_MAX} characters are checked"
            yield GroundedClaim(claim=index, verdict=GroundingVerdict.NOT_CHECKABLE, reason=reason)
            continue
        found = judged(claim, calls)
        yield GroundedClaim(
            claim=index,
            verdict=VERDICT[found.standing],
            reason=found.reason,
            missing=found.missing,
        )


def calls_of(trajectory: Trajectory) -> dict[str, SettledCall]:
    """What the pointers of claims lead into: each call by its id, as it settled."""
    return {call: _settled(row) for call, row in settled(trajectory.calls).items()}


def _settled(row: Attempt) -> SettledCall:
    """An attempt as the reflector was shown it."""
    return SettledCall(
        call_id=row.call_id,
        step=row.step,
        sub_goal=row.sub_goal,
        action=row.action,
        status=StepStatus.FAILED if row.error is not None else StepStatus.SUCCEEDED,
        arguments=row.arguments,
        output=row.output,
        error=row.error,
        side_effect=row.side_effect,
        attempt=row.attempt,
    )


def _is_penalised(one: GroundedClaim) -> bool:
    return one.verdict is GroundingVerdict.CONTRADICTED or bool(one.missing)


def _is_ours(trajectory: Trajectory) -> bool:
    """The output is the workflow's fallback or a rule's answer: nobody made it up."""
    answered = trajectory.fallback is not None and not trajectory.fallback.probe
    return trajectory.fell_back or answered or trajectory.status is not SessionStatus.SUCCEEDED


def _reasons(
    claims: tuple[GroundedClaim, ...], sentences: tuple[UnsourcedSentence, ...]
) -> Iterator[str]:
    """Why a person must look, whatever is drawn."""
    for one in claims:
        if _is_penalised(one):
            yield f"claim {one.claim}: {one.reason}"
    for sentence in sentences:
        if sentence.risk > REVIEW_ABOVE:
            yield f"{sentence.text!r}: {sentence.reason}"


def _probability(
    trajectory: Trajectory, claims: tuple[GroundedClaim, ...], *, certain: bool
) -> float:
    if certain:
        return 1.0
    unchecked = any(one.verdict is GroundingVerdict.NOT_CHECKABLE for one in claims)
    return SAMPLED if unchecked else 0.0


def _is_drawn(session_id: str, probability: float) -> bool:
    digest = sha256(f"grounding:{session_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < probability * 2**64


def review_of(trajectory: Trajectory) -> FeedbackRow | None:
    """The last review by its time; what the gateway says of itself is none."""
    last = trajectory.reflections[-1] if trajectory.reflections else None
    judges = ("", last.call_id) if last else ("",)
    steps = ("", last.step) if last else ("",)
    found = [
        row
        for row in trajectory.feedback
        if row.feedback.kind is FeedbackKind.VALIDATION
        and row.feedback.score is not None
        and not row.feedback.author.startswith(OUR_FEEDBACK)
        and row.feedback.target.step in steps
        and row.feedback.target.call_id in judges
    ]
    return max(found, key=lambda row: row.feedback.time, default=None)
