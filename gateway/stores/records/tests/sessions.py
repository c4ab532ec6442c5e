"""Trajectories that fill every table, made by number; and a log to write them into."""

from pathlib import Path

import msgspec

from acp_spec.model.calls import Claim, LlmCall, Reward
from acp_spec.model.enums import FeedbackKind, SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.ids import session_id
from acp_spec.model.payload import payload
from acp_spec.model.recovery import Option, PolicyRef, Trigger
from acp_spec.model.session import Deviation, Feedback, FeedbackTarget, RolloutMark
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    DecisionOption,
    DecisionRow,
    FeedbackRow,
    Gap,
    Lineage,
    LlmCallRow,
    ObservationRow,
    OperationalReward,
    QualityReward,
    ReflectionRow,
    Rewards,
    Trajectory,
)
from gateway.stores.trajectory_log import TrajectoryLog, line_of

AT_MS = 1_790_000_000_000
ACTIONS = ("card.freeze", "card.status", "mail.send")


def name_of(number: int) -> str:
    return session_id(AT_MS + number, 0, random_64=number)


def whole(number: int, sequence: int = 7, *, comments: tuple[str, ...] = ()) -> Trajectory:
    """A session that says something in every table."""
    calls = tuple(_call(number, attempt) for attempt in (1, 2))
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=name_of(number),
        lineage_id=f"l{number}",
        lineage=Lineage(
            intended={"tool": "cards@1.0"},
            input_sha256="ab" * 32,
            deviations=(Deviation(step="act", role="tool", intended="a@1", served="a@2"),),
        ),
        tenant="default",
        workflow="hotline@1.0",
        labels={"channel": "phone"},
        status=SessionStatus.SUCCEEDED,
        input=payload(b'{"text":"freeze my \\u0000 card"}'),
        calls=calls,
        decisions=(_decision(number),),
        llm_calls=(LlmCallRow(call_id=f"c{number}", attempt=1, llm_call=_llm()),),
        observations=(ObservationRow(step="observe", call_id=f"o{number}", stored=1),),
        reflections=(ReflectionRow(step="reflect", call_id=f"r{number}", verdict="ACCEPT"),),
        feedback=tuple(_feedback(n, text) for n, text in enumerate(comments)),
        rewards=Rewards(
            quality=(
                QualityReward(name="helpful", value=0.5, source="reflector"),
                QualityReward(name="late", validity="NOT_JUDGED", reason="TIMEOUT"),
            ),
            operational=OperationalReward(succeeded=True, attempts=2, calls=1, duration_ms=40),
        ),
        reflector_rewards=(Reward(name="helpful", value=0.5),),
        output=payload(b'{"said":"done"}'),
        claims=(Claim(text="it is frozen", value=payload(b"true"), sources=("/calls/c/a",)),),
        gaps=(Gap(what="memory", why="no observer"),),
        opened_at=rfc3339(AT_MS + number),
        ended_at=rfc3339(AT_MS + number + 40),
        sequence=sequence,
        rollouts=(RolloutMark(rollout="r", stage="canary", arm="BASELINE"),),
    )


def _call(number: int, attempt: int) -> Attempt:
    failed = AcpError(code=Code.UNAVAILABLE, reason="UNAVAILABLE", message="away")
    return Attempt(
        call_id=f"c{number}",
        attempt=attempt,
        step="act",
        role="tool",
        component="cards",
        component_version="1.0",
        action=ACTIONS[number % len(ACTIONS)],
        arguments=payload(b'{"card":"1234"}'),
        output=payload(b'{"frozen":true}') if attempt == 2 else payload(b""),
        error=failed if attempt == 1 else None,
        queued_at=rfc3339(AT_MS + number),
        sent_at=rfc3339(AT_MS + number + 1),
        ended_at=rfc3339(AT_MS + number + 9),
        service_ms=8,
    )


def _decision(number: int) -> DecisionRow:
    return DecisionRow(
        decision_id=f"d{number}",
        index=0,
        call_id=f"c{number}",
        after_attempt=1,
        trigger=Trigger.FAILED,
        at=rfc3339(AT_MS + number),
        features={"attempt": 1, "reason": "UNAVAILABLE", "may_retry": True, "queue_ms": None},
        feature_schema="recovery-2",
        options=(DecisionOption(option=Option.RETRY, params={"wait_ms": 5}, probability=1.0),),
        chosen=Option.RETRY,
        draw=0.25,
        policy=PolicyRef(name="backoff", version="1", digest="x"),
        guardrails_digest="g",
    )


def _llm() -> LlmCall:
    return LlmCall(id="l", model="m", prompt=payload(b'"p"'), prompt_token_ids=(1, 2), tokens=3)


def _feedback(number: int, text: str) -> FeedbackRow:
    return FeedbackRow(
        feedback=Feedback(
            kind=FeedbackKind.RATING,
            score=4.0,
            comment=text,
            target=FeedbackTarget(step="act"),
            author="ann",
            time="2026-11-01T10:00:00+02:00",
            feedback_id=f"f{number}",
        ),
        received_at=rfc3339(AT_MS + 1_000),
    )


def line(one: Trajectory) -> bytes:
    return line_of(msgspec.json.encode(one))


def new_log(directory: Path, *, rotate_bytes: int = 1 << 30) -> TrajectoryLog:
    return TrajectoryLog(directory, rotate_bytes=rotate_bytes, rotate_ms=86_400_000)


def put(log: TrajectoryLog, *sessions: Trajectory) -> None:
    log.append([line(one) for one in sessions], AT_MS)
