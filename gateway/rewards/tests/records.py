"""Trajectories and rules as tests write them."""

from acp_spec.model.enums import Boundary, FeedbackKind, SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.session import Feedback
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import SCHEMA_VERSION, Attempt, FeedbackRow, Trajectory
from gateway.rewards.rules import RewardRules
from gateway.rewards.rules_file import parse_rules

OPENED_MS, ENDED_MS = 1_000_000, 1_010_000
AS_OF_MS = 10**13
HEAD = "rewards: r\nversion: 1.0.0\n"


def rules_of(rules: str, head: str = "") -> RewardRules:
    """Rules from the lines below `rules:`; what is wrong in them when they are not."""
    found = parse_rules(f"{HEAD}{head}rules:\n{rules}".encode())
    assert isinstance(found, RewardRules), found
    return found


def trajectory(**changes: object) -> Trajectory:
    fields = {
        "schema_version": SCHEMA_VERSION,
        "session_id": "s",
        "lineage_id": "l",
        "workflow": "hotline@1.0.0",
        "status": SessionStatus.SUCCEEDED,
        "opened_at": rfc3339(OPENED_MS),
        "ended_at": rfc3339(ENDED_MS),
        **changes,
    }
    return Trajectory(**fields)  # type: ignore[arg-type]


def attempt(call_id: str, number: int = 1, *, at_ms: int = 0, **changes: object) -> Attempt:
    """One that began and ended `at_ms` after the opening, unless `changes` say otherwise."""
    fields = {
        "call_id": call_id,
        "role": "EXECUTE",
        "attempt": number,
        "step": "act",
        "action": "read",
        "component": "tools",
        "component_version": "1.0.0",
        "sent_at": rfc3339(OPENED_MS + at_ms),
        "ended_at": rfc3339(OPENED_MS + at_ms),
    }
    return Attempt(**{**fields, **changes})  # type: ignore[arg-type]


def failure(
    boundary: Boundary = Boundary.COMPONENT,
    code: Code = Code.UNAVAILABLE,
    reason: str = "UNAVAILABLE",
) -> AcpError:
    return AcpError(code=code, reason=reason, message="it failed", boundary=boundary)


def said(
    score: float | None,
    kind: FeedbackKind = FeedbackKind.RATING,
    *,
    delay_ms: int = 0,
    author: str = "ann",
    **changes: object,
) -> FeedbackRow:
    """Feedback that came `delay_ms` after the end of the session."""
    time = rfc3339(ENDED_MS + delay_ms)
    fields = {
        "kind": kind,
        "score": score,
        "author": author,
        "time": time,
        "feedback_id": f"{author}-{kind.value}-{delay_ms}",
        **changes,
    }
    return FeedbackRow(feedback=Feedback(**fields), received_at=time)  # type: ignore[arg-type]
