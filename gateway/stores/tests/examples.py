"""One event of every kind, for tests of what stores them."""

import msgspec

from acp_spec.model.calls import LlmCall, Usage
from acp_spec.model.context import Signals
from acp_spec.model.enums import FeedbackKind, SessionStatus, StepRole, StepStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.payload import payload
from acp_spec.model.recovery import Decision, Option, OptionChance, PolicyRef, Trigger
from acp_spec.model.session import Deviation, Feedback, FeedbackTarget
from gateway.engine import events as e

SESSION = "01J8ZC4B6Q0000000000000001"
EXACT = payload(
    b'{"n":9007199254740993,"d":0.10,"big":123456789012345678.90,"a":[1,null,"\\u00e9"]}'
)
ERROR = AcpError(code=Code.UNAVAILABLE, reason="OVERLOADED", message="busy", details=EXACT)

DECISION = Decision(
    decision_id="d1",
    index=0,
    call_id="c1",
    after_attempt=1,
    trigger=Trigger.FAILED,
    at_ms=9,
    features={"elapsed_ms": 4, "role": "EXECUTE", "p": 0.5, "none": None},
    options=(OptionChance(option=Option.RETRY, wait_ms=7, probability=1.0),),
    chosen=Option.RETRY,
    draw=0.25,
    policy=PolicyRef(name="backoff", version="1", digest="x"),
    guardrails_digest="y",
)

EVENTS: tuple[e.AnyEvent, ...] = (
    e.Opened(at_ms=1, session_id=SESSION, lineage_id="l", input=EXACT, pins={"plan": "p@1.0.0"}),
    e.CallCreated(
        at_ms=2, call_id="c1", step="s", role=StepRole.EXECUTE, body=EXACT, body_digest="d"
    ),
    e.SubGoalEnded(at_ms=3, step="s", sub_goal="g", status=StepStatus.SKIPPED, error=ERROR),
    e.StepEnded(at_ms=4, step="s", status=StepStatus.SUCCEEDED, variables={"v": EXACT}),
    e.Deferred(at_ms=5, call_id="c1", attempt=1, policy="rate", until_ms=6),
    e.Refused(at_ms=6, call_id="c1", attempt=1, error=ERROR, policy="breaker"),
    e.AttemptStarted(
        at_ms=7,
        call_id="c1",
        attempt=1,
        component="c",
        version="1.0.0",
        instance="i",
        timeout_ms=5,
        signals=(Signals(queue_length=3),),
        deviation=Deviation(step="s", role="EXECUTE", intended="a", served="b"),
    ),
    e.AttemptEnded(
        at_ms=8,
        call_id="c1",
        attempt=1,
        response=EXACT,
        usage=Usage(tokens=3),
        llm_calls=(LlmCall(id="m", prompt=EXACT, logprobs=(-0.5,)),),
    ),
    e.OperationEnded(at_ms=9, call_id="c1", attempt=1, error=ERROR, by="callback"),
    e.Late(at_ms=10, call_id="c1", attempt=1, response=EXACT),
    e.Decided(at_ms=11, call_id="c1", decision=DECISION),
    e.TimerFired(at_ms=12, timer=e.Timer.BACKOFF, call_id="c1", attempt=2),
    e.CancelRequested(at_ms=13, by="client"),
    e.FeedbackGiven(
        at_ms=14,
        feedback=Feedback(
            kind=FeedbackKind.RATING, score=0.5, target=FeedbackTarget(step="s", loop=1)
        ),
        feedback_id="f",
        recorded_by="token:0a1b2c3d4e5f",
    ),
    e.FinishRequested(at_ms=15, output=EXACT),
    e.SessionEnded(at_ms=16, status=SessionStatus.SUCCEEDED, output=EXACT),
    e.SessionErased(at_ms=17, by="admin"),
)


def as_text(events: object) -> bytes:
    """For comparison: payloads are equal when their text is, wherever they live."""
    return msgspec.json.encode(events)
