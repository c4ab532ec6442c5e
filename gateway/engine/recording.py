"""What a finished session was answered, so that another may be run on the same answers (SPEC 9.7).

A twin (canary, shadow, replayed traffic) sends READ calls only. Its other calls are answered from
this record: by step and sub-goal, action and canonical arguments, each recorded call once. Observe
calls are matched by their step alone: their bodies hold ids and times, which are never equal.
"""

from collections.abc import Iterable

import msgspec

from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload, payload
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.states import CallState, SessionState
from gateway.governance.comparison import canonical


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt as it ended; `took_ms` is the component's time, without the gateway's queue."""

    response: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    took_ms: int = 0


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call with its attempts' ends; `arguments` in canonical form."""

    call_id: str
    step: str
    sub_goal: str
    role: str
    action: str
    effect: Effect
    arguments: str
    answers: tuple[RecordedAnswer, ...]

    def answer(self, attempt: int) -> RecordedAnswer:
        """What this attempt gets; beyond the last recorded one, that one again."""
        return self.answers[min(attempt, len(self.answers)) - 1]


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of a session that were answered. `writes`: actions that may not be sent, whatever
    a candidate's card says of them."""

    session_id: str
    lineage_id: str
    calls: tuple[RecordedCall, ...] = ()
    writes: frozenset[str] = frozenset()


def recording(trajectory: Trajectory) -> Recording:
    """The record of a session that has ended."""
    rows: dict[str, list[Attempt]] = {}
    for row in trajectory.calls:
        if row.ended_at:
            rows.setdefault(row.call_id, []).append(row)
    calls = tuple(map(_call, rows.values()))
    return Recording(
        session_id=trajectory.session_id,
        lineage_id=trajectory.lineage_id,
        calls=calls,
        writes=frozenset(c.action for c in calls if c.action and c.effect is not Effect.READ),
    )


def _call(rows: list[Attempt]) -> RecordedCall:
    first = rows[0]
    return RecordedCall(
        call_id=first.call_id,
        step=first.step,
        sub_goal=first.sub_goal,
        role=first.role,
        action=first.action,
        effect=first.effect,
        arguments=canonical(bytes(first.arguments)) if first.action else "",
        answers=tuple(map(_answer, rows)),
    )


def _answer(row: Attempt) -> RecordedAnswer:
    begun, ended = row.sent_at_ms, row.ended_at_ms
    return RecordedAnswer(
        response=ABSENT if row.error else _response(row),
        error=row.error,
        side_effect=row.side_effect,
        took_ms=max(0, ended - begun) if begun is not None and ended is not None else 0,
    )


def _response(row: Attempt) -> Payload:
    """The response as it came: a row of an executor keeps its output alone."""
    if row.role != StepRole.EXECUTE.value:
        return row.output
    members = {"output": row.output} if bytes(row.output) else {}
    return payload(msgspec.json.encode({**members, "side_effect": row.side_effect.value}))


def matched(record: Recording, state: SessionState, *, call: CallState) -> RecordedCall | None:
    """The recorded call that answers this call of a twin; None: there is none.

    Found by going through the twin's calls in their order, so that it needs no memory of its own.
    """
    left = list(record.calls)
    for one in state.calls.values():
        found = _best(record, state, call=one, left=left)
        if one.created.call_id == call.created.call_id:
            return found
        if found is not None:
            left.remove(found)
    return None


def _best(
    record: Recording, state: SessionState, *, call: CallState, left: Iterable[RecordedCall]
) -> RecordedCall | None:
    created = call.created
    alike = [r for r in left if r.role == created.role.value and r.action == created.action]
    if created.role is StepRole.EXECUTE:
        wanted = _arguments(record, state, call=call)
        alike = [one for one in alike if one.arguments == wanted]
    else:
        alike = [one for one in alike if one.step == created.step]
    return max(alike, key=lambda one: _nearness(one, call), default=None)


def _nearness(one: RecordedCall, call: CallState) -> tuple[bool, bool]:
    """The same step before any other, within it the same sub-goal; of equals the first."""
    created = call.created
    same_step = one.step == created.step
    return same_step, same_step and one.sub_goal == created.sub_goal


def _arguments(record: Recording, state: SessionState, *, call: CallState) -> str:
    """The twin's arguments as the primary would have written them: its ids are the primary's."""
    text = bytes(call.created.arguments)
    opened = state.opened
    text = text.replace(opened.lineage_id.encode(), record.lineage_id.encode())
    return canonical(text.replace(opened.session_id.encode(), record.session_id.encode()))
