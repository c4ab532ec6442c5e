"""One session as its page shows it, open or ended: its head, what was judged, and its timeline.

Made from the trajectory alone, so a session in memory, in the journal and in an archive look alike.
Pure. Give it the masked trajectory (`gateway.stores.masked`): it shows all of what it gets.
"""

import msgspec

from acp_spec.model.errors import AcpError
from acp_spec.model.session import Deviation
from acp_spec.model.times import parse_rfc3339
from acp_spec.model.trajectory import FeedbackRow, Gap, PlanVersion, Rewards, Trajectory
from gateway.insight.taking import QUALITY, reward_of
from gateway.runtime.dashboard.timeline import (
    TEXT_CHARACTERS_MAX,
    ShownPayload,
    TimelineEntry,
    shown,
    shown_error,
    timeline,
)


class ShownClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence of the answer with its sources; `verdict`: the guard's, absent where it did not
    look. `missing`: sources that lead nowhere."""

    text: str
    value: ShownPayload | None = None
    unit: str = ""
    derivation: str = ""
    sources: tuple[str, ...] = ()
    verdict: str = ""
    reason: str = ""
    missing: tuple[str, ...] = ()


class ShownFeedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judgement that stands. `recorded_by`: whose token brought it, if not its author's."""

    feedback_id: str
    kind: str
    author: str = ""
    recorded_by: str = ""
    score: float | None = None
    comment: str = ""
    call_id: str = ""
    step: str = ""
    loop: int = 0
    given_at: int | None = None
    received_at: int | None = None
    sampling_probability: float | None = None


class ShownPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan that was made, in its generation."""

    generation: int
    step: str
    call_id: str
    rationale: str = ""
    confidence: float | None = None
    plan: ShownPayload | None = None


class DashboardSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`rewards`: raw, and shaped in its `vector` where the gateway has rules. `is_open`: more will
    come. Times are milliseconds since the epoch."""

    session_id: str
    lineage_id: str = ""
    workflow: str = ""
    version: str = ""
    status: str = ""
    is_open: bool = False
    error: AcpError | None = None
    fell_back: bool = False
    fallback_rule: str = ""
    opened_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    attempts: int
    quality: float | None = None
    review: str = ""
    labels: dict[str, str] = {}
    input: ShownPayload | None = None
    output: ShownPayload | None = None
    intended: dict[str, str] = {}
    deviations: tuple[Deviation, ...] = ()
    rollouts: tuple[str, ...] = ()
    plans: tuple[ShownPlan, ...] = ()
    claims: tuple[ShownClaim, ...] = ()
    feedback: tuple[ShownFeedback, ...] = ()
    rewards: Rewards = Rewards()
    gaps: tuple[Gap, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()


def session_page(one: Trajectory) -> DashboardSession:
    """All of it."""
    name, _, version = one.workflow.partition("@")
    opened, ended = parse_rfc3339(one.opened_at), parse_rfc3339(one.ended_at)
    grounding = one.grounding
    return DashboardSession(
        session_id=one.session_id,
        lineage_id=one.lineage_id,
        workflow=name,
        version=version,
        status=one.status.value,
        is_open=ended is None,
        error=shown_error(one.error),
        fell_back=one.fell_back,
        fallback_rule=one.fallback.rule if one.fallback is not None else "",
        opened_at=opened,
        ended_at=ended,
        duration_ms=ended - opened if opened is not None and ended is not None else None,
        attempts=len(one.calls),
        quality=reward_of(one, QUALITY),
        review=grounding.review.value if grounding is not None else "",
        labels=one.labels,
        input=shown(one.input),
        output=shown(one.output),
        intended=one.lineage.intended,
        deviations=one.lineage.deviations,
        rollouts=tuple(mark.rollout for mark in one.rollouts),
        plans=tuple(_plan(row) for row in one.plan),
        claims=_claims(one),
        feedback=tuple(_feedback(row) for row in one.feedback),
        rewards=one.rewards,
        gaps=tuple(Gap(what=gap.what, why=_text(gap.why)) for gap in one.gaps),
        timeline=timeline(one),
    )


def _claims(one: Trajectory) -> tuple[ShownClaim, ...]:
    grounding = one.grounding
    verdicts = {row.claim: row for row in grounding.claims} if grounding is not None else {}
    found = []
    for place, claim in enumerate(one.claims):
        judged = verdicts.get(place)
        found.append(
            ShownClaim(
                text=_text(claim.text),
                value=shown(claim.value),
                unit=claim.unit,
                derivation=claim.derivation,
                sources=claim.sources,
                verdict=judged.verdict.value if judged else "",
                reason=judged.reason if judged else "",
                missing=judged.missing if judged else (),
            )
        )
    return tuple(found)


def _feedback(row: FeedbackRow) -> ShownFeedback:
    given = row.feedback
    return ShownFeedback(
        feedback_id=given.feedback_id,
        kind=given.kind.value,
        author=given.author,
        recorded_by=row.recorded_by,
        score=given.score,
        comment=_text(given.comment),
        call_id=given.target.call_id,
        step=given.target.step,
        loop=given.target.loop,
        given_at=parse_rfc3339(given.time),
        received_at=parse_rfc3339(row.received_at),
        sampling_probability=given.sampling_probability,
    )


def _plan(row: PlanVersion) -> ShownPlan:
    return ShownPlan(
        generation=row.generation,
        step=row.step,
        call_id=row.call_id,
        rationale=_text(row.rationale),
        confidence=row.confidence,
        plan=shown(msgspec.Raw(msgspec.json.encode(row.plan))),
    )


def _text(text: str) -> str:
    """A text as a page gets it."""
    return text[:TEXT_CHARACTERS_MAX]
