"""The events of a trajectory that rules look at, each with its name and the facts about it.

A call and the attempt that settled it are one event: whoever charges the one has charged the other.
Pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import Payload
from acp_spec.model.reward_vector import Validity
from acp_spec.model.session import FeedbackTarget
from acp_spec.model.times import parse_rfc3339
from acp_spec.model.trajectory import Attempt, FeedbackRow, Trajectory
from gateway.rewards.facts import (
    INPUT,
    OUTPUT,
    SESSION,
    AttemptFacts,
    CallFacts,
    CommentFacts,
    DecisionFacts,
    EndFacts,
    Facts,
    FactScope,
    FeedbackFacts,
    JudgementFacts,
    LlmCallFacts,
    SessionFacts,
    name_of,
)
from gateway.rewards.given import duration_ms
from gateway.rewards.judgeable import prevented
from gateway.rewards.readings import readings
from gateway.rewards.rules import Each
from gateway.rewards.settled import settled

NULL: Final = b"null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`key`: no two rules of a kind get it twice. `prevented`: why it cannot be judged.

    `call_id`: the call whose step it belongs to; empty for the session. `row`: feedback's own."""

    key: str
    scope: FactScope
    call_id: str = ""
    action: str = ""
    prevented: str = ""
    delay_ms: int = 0
    row: FeedbackRow | None = None


class Events:
    """Events of one trajectory as known at a time; each kind is made once."""

    def __init__(self, trajectory: Trajectory, *, as_of_ms: int) -> None:
        self.trajectory = trajectory
        self.last = settled(trajectory.calls)
        self._as_of_ms = as_of_ms
        self._made: dict[Each, tuple[Event, ...]] = {}
        self._session = SessionFacts(
            workflow=trajectory.workflow, tenant=trajectory.tenant, labels=trajectory.labels
        )

    def of(self, each: Each) -> tuple[Event, ...]:
        """In the order in which they happened."""
        if each not in self._made:
            self._made[each] = tuple(_MAKERS[each](self))
        return self._made[each]

    @cached_property
    def feedback(self) -> tuple[FeedbackRow, ...]:
        """What had been said by then."""
        return tuple(
            row
            for row in self.trajectory.feedback
            if (parse_rfc3339(row.received_at) or 0) <= self._as_of_ms
        )

    def scope(
        self, each: Each, facts: Facts, *, payloads: dict[str, bytes] | None = None
    ) -> FactScope:
        return FactScope({name_of(each): facts, SESSION: self._session}, payloads)


def is_open(row: Attempt) -> bool:
    """It is under way: nothing is known of it yet."""
    return not row.ended_at and not row.reused and row.error is None


def session_prevented(trajectory: Trajectory) -> str:
    """Why a session's end says nothing of what it was to achieve; empty when it does."""
    if not trajectory.ended_at:
        return "the session has not ended"
    if trajectory.status is SessionStatus.CANCELLED:
        return "CLIENT: CANCELLED"
    if trajectory.fell_back or (trajectory.fallback is not None and not trajectory.fallback.probe):
        return "GATEWAY: a fallback answered"
    if trajectory.error is None and trajectory.status is SessionStatus.FAILED:
        return "UNKNOWN: the session failed without an error"
    return prevented(trajectory.error)


def _ends(events: Events) -> Iterator[Event]:
    found = events.trajectory
    if not found.ended_at:
        return
    reason, boundary = _named(found.error)
    facts = EndFacts(
        status=found.status.value,
        fell_back=found.fell_back,
        error_reason=reason,
        error_boundary=boundary,
        duration_ms=duration_ms(found),
    )
    payloads = {INPUT: _text(found.input), OUTPUT: _text(found.output)}
    yield Event(
        key="end",
        scope=events.scope(Each.END, facts, payloads=payloads),
        prevented=session_prevented(found),
    )


def _calls(events: Events) -> Iterator[Event]:
    for row in events.last.values():
        if is_open(row):
            continue
        facts = _call_facts(row, succeeded=row.error is None)
        yield Event(
            key=_attempt_key(row),
            scope=events.scope(Each.CALL, facts, payloads={OUTPUT: _text(row.output)}),
            call_id=row.call_id,
            action=row.action,
            prevented=prevented(row.error),
        )


def _call_facts(row: Attempt, *, succeeded: bool) -> CallFacts:
    reason, boundary = _named(row.error)
    return CallFacts(
        step=row.step,
        loop=row.loop,
        role=row.role,
        action=row.action,
        component=row.component,
        version=row.component_version,
        succeeded=succeeded,
        reused=row.reused,
        error_reason=reason,
        error_boundary=boundary,
        side_effect=row.side_effect.value,
    )


def _attempts(events: Events) -> Iterator[Event]:
    for row in events.trajectory.calls:
        if is_open(row):
            continue
        succeeded = row.error is None and row.ended_at != ""
        facts = AttemptFacts(
            **msgspec.structs.asdict(_call_facts(row, succeeded=succeeded)),
            number=row.attempt,
            sent=row.sent_at != "",
            hedge=row.hedge,
            late=row.late,
            wait_ms=row.wait_ms,
            service_ms=row.service_ms or 0,
        )
        yield Event(
            key=_attempt_key(row),
            scope=events.scope(Each.ATTEMPT, facts),
            call_id=row.call_id,
            action=row.action,
            prevented=prevented(row.error),
        )


def _llm_calls(events: Events) -> Iterator[Event]:
    for number, row in enumerate(events.trajectory.llm_calls):
        said = row.llm_call
        facts = LlmCallFacts(model=said.model, tokens=said.tokens, latency_ms=said.latency_ms)
        yield Event(
            key=f"llm:{row.call_id}/{row.attempt}/{number}",
            scope=events.scope(Each.LLM_CALL, facts),
            call_id=row.call_id,
            action=_action(events, row.call_id),
        )


def _decisions(events: Events) -> Iterator[Event]:
    for row in events.trajectory.decisions:
        facts = DecisionFacts(
            trigger=row.trigger.value,
            chosen=row.chosen.value,
            override=row.override,
            ended_as=row.ended_as,
        )
        yield Event(
            key=f"decision:{row.decision_id}",
            scope=events.scope(Each.DECISION, facts),
            call_id=row.call_id,
            action=_action(events, row.call_id),
        )


def _feedback(events: Events) -> Iterator[Event]:
    """Scores; words alone are no figure."""
    for row in events.feedback:
        given = row.feedback
        if given.score is None:
            continue
        judged = judged_call(events, given.target)
        delay_ms = delay_of(events, row)
        facts = FeedbackFacts(
            kind=given.kind.value, score=given.score, author=given.author, delay_ms=delay_ms
        )
        yield Event(
            key=f"feedback:{given.feedback_id}",
            scope=events.scope(Each.FEEDBACK, facts),
            call_id=judged,
            action=_action(events, judged),
            delay_ms=delay_ms,
            row=row,
        )


def _judgements(events: Events) -> Iterator[Event]:
    for number, row in enumerate(events.trajectory.reflector_rewards):
        facts = JudgementFacts(name=row.name, value=row.value)
        yield Event(
            key=f"judgement:{number}",
            scope=events.scope(Each.JUDGEMENT, facts),
            call_id=row.call_id,
            action=_action(events, row.call_id),
        )


def _comments(events: Events) -> Iterator[Event]:
    """Words that somebody other than the gateway said, as they were understood. With a score they
    are one event with it: whoever judged by the score has judged the comment."""
    rows = {row.feedback.feedback_id: row for row in events.feedback}
    for reading in readings(events.feedback):
        row = rows[reading.feedback_id]
        judged, delay_ms = judged_call(events, row.feedback.target), delay_of(events, row)
        facts = CommentFacts(
            kind=row.feedback.kind.value,
            author=row.feedback.author,
            tags=reading.tags,
            corrections=len(reading.corrections),
            delay_ms=delay_ms,
        )
        not_read = f"comment: {reading.reason}" if reading.validity is not Validity.VALID else ""
        yield Event(
            key=f"feedback:{reading.feedback_id}",
            scope=events.scope(Each.COMMENT, facts),
            call_id=judged,
            action=_action(events, judged),
            prevented=not_read,
            delay_ms=delay_ms,
            row=row,
        )


_MAKERS: Final[dict[Each, Callable[[Events], Iterator[Event]]]] = {
    Each.END: _ends,
    Each.CALL: _calls,
    Each.ATTEMPT: _attempts,
    Each.LLM_CALL: _llm_calls,
    Each.DECISION: _decisions,
    Each.FEEDBACK: _feedback,
    Each.JUDGEMENT: _judgements,
    Each.COMMENT: _comments,
}


def judged_call(events: Events, target: FeedbackTarget) -> str:
    """The call that a judgement is about: a step's is its last one; empty for the session."""
    if target.call_id:
        return target.call_id
    if not target.step:
        return ""
    own = [r for r in events.last.values() if r.step == target.step and r.loop == target.loop]
    return own[-1].call_id if own else ""


def delay_of(events: Events, row: FeedbackRow) -> int:
    """From the end of what is judged to the author's time; 0 for what was said before."""
    said_ms = parse_rfc3339(row.feedback.time) or parse_rfc3339(row.received_at) or 0
    call = events.last.get(judged_call(events, row.feedback.target))
    ended_ms = call.ended_at_ms if call is not None else events.trajectory.ended_at_ms
    return 0 if ended_ms is None else max(0, said_ms - ended_ms)


def _attempt_key(row: Attempt) -> str:
    return f"attempt:{row.call_id}/{row.attempt}"


def _action(events: Events, call_id: str) -> str:
    row = events.last.get(call_id)
    return row.action if row is not None else ""


def _named(error: AcpError | None) -> tuple[str, str]:
    return (error.reason, error.boundary.value) if error is not None else ("", "")


def _text(found: Payload) -> bytes:
    return bytes(found) or NULL
