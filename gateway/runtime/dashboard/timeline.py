"""A trajectory as a timeline: steps, their calls, every attempt and decision, in order. Pure.

Waiting in the gateway and service at the component stand apart. Payloads are cut: a page never
gets more of one than `SHOWN_BYTES_MAX`, and always its size. Masking comes before (`masked`).
"""

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.times import parse_rfc3339
from acp_spec.model.trajectory import Attempt, DecisionRow, Trajectory
from gateway.stores.masked import MaskedAttempt

SHOWN_BYTES_MAX: Final = 64 * 1024
TEXT_CHARACTERS_MAX: Final = 16 * 1024


class TimelineKind(enum.Enum):
    """A STEP has CALLs, a CALL has ATTEMPTs and the DECISIONs after them; WAIT is before a try."""

    STEP = "STEP"
    CALL = "CALL"
    WAIT = "WAIT"
    ATTEMPT = "ATTEMPT"
    DECISION = "DECISION"


class ShownPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`json`: all of it; or `text`: its beginning, where it has more `bytes` than are shown."""

    bytes: int
    json: Payload = ABSENT
    text: str = ""
    is_cut: bool = False


class ShownOption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An option of a decision; `masked_by`: what forbade it."""

    option: str
    probability: float
    wait_ms: int | None = None
    masked_by: str = ""


class ShownDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was possible, what was drawn, by which policy; `override`: who decided otherwise."""

    decision_id: str
    trigger: str
    options: tuple[ShownOption, ...]
    chosen: str
    draw: float
    policy: str
    policy_version: str = ""
    override: str = ""
    ended_as: str = ""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. `depth`: 0 for a step, 1 for a call, 2 below. Without `to_ms` it is not over."""

    kind: TimelineKind
    depth: int
    name: str
    step: str = ""
    loop: int
    call_id: str = ""
    sub_goal: str = ""
    role: str = ""
    component: str = ""
    version: str = ""
    instance: str = ""
    attempt: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    wait_ms: int | None = None
    service_ms: int | None = None
    timeout_ms: int | None = None
    status: str = ""
    error: AcpError | None = None
    side_effect: str = ""
    is_hedge: bool = False
    is_late: bool = False
    is_reused: bool = False
    reused_from: str = ""
    retry_of: str = ""
    breaker: str = ""
    arguments: ShownPayload | None = None
    output: ShownPayload | None = None
    decision: ShownDecision | None = None


def shown(payload: Payload, was_bytes: int = 0) -> ShownPayload | None:
    """A payload as a page gets it, None where there is none; `was_bytes`: before it was masked."""
    data = bytes(payload)
    if not data:
        return None
    size = was_bytes or len(data)
    if len(data) <= SHOWN_BYTES_MAX:
        return ShownPayload(bytes=size, json=payload)
    text = data[:SHOWN_BYTES_MAX].decode(errors="ignore")
    return ShownPayload(bytes=size, text=text, is_cut=True)


def shown_error(error: AcpError | None) -> AcpError | None:
    """An error as a page gets it: its message is a peer's text."""
    if error is None:
        return None
    details = shown(error.details)
    is_whole = details is not None and not details.is_cut
    return msgspec.structs.replace(
        error,
        message=error.message[:TEXT_CHARACTERS_MAX],
        details=details.json if details is not None and is_whole else ABSENT,
        details_truncated=error.details_truncated or (details is not None and not is_whole),
    )


def timeline(one: Trajectory) -> tuple[TimelineEntry, ...]:
    """Every step in the order of its first call, with all that happened in it."""
    steps: dict[tuple[str, int], dict[str, list[Attempt]]] = {}
    for row in one.calls:
        calls = steps.setdefault((row.step, row.loop), {})
        calls.setdefault(row.call_id, []).append(row)
    decisions: dict[str, list[DecisionRow]] = {}
    for decision in one.decisions:
        decisions.setdefault(decision.call_id, []).append(decision)
    return tuple(entry for calls in steps.values() for entry in _of_step(calls, decisions))


def _of_step(
    calls: dict[str, list[Attempt]], decisions: dict[str, list[DecisionRow]]
) -> Iterator[TimelineEntry]:
    rows = [row for attempts in calls.values() for row in attempts]
    first = rows[0]
    yield TimelineEntry(
        kind=TimelineKind.STEP,
        depth=0,
        name=first.step,
        step=first.step,
        loop=first.loop,
        role=first.role,
        from_ms=_first(rows),
        to_ms=_last(rows),
        status=_status_of_step(calls),
    )
    for call_id, attempts in calls.items():
        yield from _of_call(attempts, decisions.get(call_id, []))


def _of_call(rows: list[Attempt], decisions: list[DecisionRow]) -> Iterator[TimelineEntry]:
    first, last = rows[0], rows[-1]
    yield TimelineEntry(
        kind=TimelineKind.CALL,
        depth=1,
        name=first.action or first.component or first.role,
        step=first.step,
        loop=first.loop,
        call_id=first.call_id,
        sub_goal=first.sub_goal,
        role=first.role,
        component=last.component,
        version=last.component_version,
        from_ms=_first(rows),
        to_ms=_last(rows),
        status=_status(rows),
        is_reused=first.reused,
        reused_from=first.reused_from,
        retry_of=first.retry_of,
        arguments=shown(first.arguments, _sizes(first)[0]),
    )
    for row in rows:
        yield from _of_attempt(row)
        for decision in decisions:
            if decision.after_attempt == row.attempt:
                yield _decision(decision, row)


def _of_attempt(row: Attempt) -> Iterator[TimelineEntry]:
    if row.reused:
        return
    queued, sent = row.queued_at_ms or None, row.sent_at_ms
    if queued is not None and row.wait_ms > 0:
        yield TimelineEntry(
            kind=TimelineKind.WAIT,
            depth=2,
            name="waiting in the gateway",
            step=row.step,
            loop=row.loop,
            call_id=row.call_id,
            attempt=row.attempt,
            from_ms=queued,
            to_ms=sent if sent is not None else row.ended_at_ms,
            wait_ms=row.wait_ms,
        )
    yield TimelineEntry(
        kind=TimelineKind.ATTEMPT,
        depth=2,
        name=f"attempt {row.attempt}",
        step=row.step,
        loop=row.loop,
        call_id=row.call_id,
        role=row.role,
        component=row.component,
        version=row.component_version,
        instance=row.instance,
        attempt=row.attempt,
        from_ms=sent if sent is not None else queued,
        to_ms=row.ended_at_ms,
        wait_ms=row.wait_ms,
        service_ms=row.service_ms,
        timeout_ms=row.timeout_ms or None,
        status=_status([row]),
        error=shown_error(row.error),
        side_effect=row.side_effect.value,
        is_hedge=row.hedge,
        is_late=row.late,
        breaker=row.breaker,
        output=shown(row.output, _sizes(row)[1]),
    )


def _decision(one: DecisionRow, row: Attempt) -> TimelineEntry:
    at_ms = parse_rfc3339(one.at)
    return TimelineEntry(
        kind=TimelineKind.DECISION,
        depth=2,
        name=one.chosen.value,
        step=row.step,
        loop=row.loop,
        call_id=one.call_id,
        attempt=one.after_attempt,
        from_ms=at_ms,
        to_ms=at_ms,
        decision=ShownDecision(
            decision_id=one.decision_id,
            trigger=one.trigger.value,
            options=tuple(
                ShownOption(
                    option=option.option.value,
                    probability=option.probability,
                    wait_ms=option.params.get("wait_ms"),
                    masked_by=option.masked_by,
                )
                for option in one.options
            ),
            chosen=one.chosen.value,
            draw=one.draw,
            policy=one.policy.name,
            policy_version=one.policy.version,
            override=one.override,
            ended_as=one.ended_as,
        ),
    )


def _sizes(row: Attempt) -> tuple[int, int]:
    """Bytes of arguments and output before masking; 0 where they are as they were."""
    return (row.arguments_bytes, row.output_bytes) if isinstance(row, MaskedAttempt) else (0, 0)


def _first(rows: list[Attempt]) -> int | None:
    return min((row.queued_at_ms for row in rows if row.queued_at_ms), default=None)


def _last(rows: list[Attempt]) -> int | None:
    """When the last of them ended; None while any is under way."""
    ends = [row.ended_at_ms for row in rows if not row.reused]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _status(rows: list[Attempt]) -> str:
    """What became of these attempts of one call."""
    if any(row.reused for row in rows):
        return "REUSED"
    if any(row.ended_at and row.error is None for row in rows):
        return "SUCCEEDED"
    last = rows[-1]
    if last.error is not None:
        return "FAILED"
    return "RUNNING" if last.sent_at else "PENDING"


def _status_of_step(calls: dict[str, list[Attempt]]) -> str:
    """The worst that is left of its calls."""
    states = {_status(rows) for rows in calls.values()}
    for state in ("RUNNING", "PENDING", "FAILED"):
        if state in states:
            return state
    return "SUCCEEDED"
