"""One run with everything it stood on (R23): what was meant to serve and what did, under which
policies, and where its logs and its trace lie; and what two runs differ in.

Made of the session's trajectory, so it is there while a session runs and as long as it is kept. No
payload is told here; words of people and components are masked.
"""

import asyncio
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import is_session_id
from acp_spec.model.session import Deviation, RolloutMark
from acp_spec.model.trajectory import Attempt, FeedbackRow, Rewards, Trajectory
from gateway.insight.differing import Difference, Parting, RunDiff
from gateway.runtime.context import attempt_span
from gateway.runtime.lineage_masking import shown_difference
from gateway.runtime.lineage_search import (
    FindLineages,
    LineageMatches,
    LineageSearch,
    trace_id_of,
)
from gateway.runtime.principal import Principal
from gateway.stores.masked import masked
from gateway.telemetry.masking import Masker
from gateway.telemetry.spans import parse_traceparent


class Trajectories(Protocol):
    """Where a caller's sessions are read."""

    async def trajectory(self, session_id: str, principal: Principal) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LineagePlaces:
    """Where the rest lies. Templates name `{trace_id}`, `{session_id}`, `{lineage_id}`; `log_file`:
    where this process's standard error goes, if that is a file."""

    trace_url: str = ""
    is_tracing: bool = False
    log_url: str = ""
    log_file: str = ""


class TracePlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`is_recorded`: the gateway exports spans, and this session's trace is one of the sampled."""

    trace_id: str = ""
    traceparent: str = ""
    is_recorded: bool = False
    url: str = ""


class LogPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`filter`: a command that lets through the lines of this session, from `file` or, where the
    gateway's standard error goes elsewhere, from what keeps it."""

    filter: str
    file: str = ""
    url: str = ""


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step or an action, as pins name them: who was meant to do it, and who did."""

    work: str
    intended: str = ""
    served: tuple[str, ...] = ()


class AttemptLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt without payloads; `span_id` is its span in the session's trace."""

    attempt: int
    component: str = ""
    instance: str = ""
    sent_at: str = ""
    ended_at: str = ""
    wait_ms: int = 0
    service_ms: int | None = None
    error: str = ""
    parameter_version: int = 0
    span_id: str = ""


class CallLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call in order; `reused_from`: its result was taken over from that call."""

    call_id: str
    step: str
    loop: int = 0
    sub_goal: str = ""
    role: str
    action: str = ""
    reused_from: str = ""
    attempts: tuple[AttemptLine, ...] = ()


class LineageHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which run it is, and how it ended."""

    session_id: str
    lineage_id: str
    workflow: str
    workflow_sha256: str = ""
    input_sha256: str = ""
    status: str
    error: str = ""
    fell_back: bool = False
    opened_at: str
    ended_at: str = ""
    duration_ms: int | None = None


class LineageRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything one run stood on."""

    head: LineageHead
    work: tuple[Work, ...] = ()
    policies: dict[str, str] = {}
    deviations: tuple[Deviation, ...] = ()
    rollouts: tuple[RolloutMark, ...] = ()
    calls: tuple[CallLine, ...] = ()
    trace: TracePlace = TracePlace()
    logs: LogPlace
    feedback: tuple[FeedbackRow, ...] = ()
    rewards: Rewards = Rewards()


class LineageDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two runs and what they differ in; `parting`: the first calls that are not the same."""

    left: LineageHead
    right: LineageHead
    differences: tuple[Difference, ...] = ()
    parting: Parting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """The lineages of a gateway's sessions, to each caller its own."""

    sessions: Trajectories
    search: LineageSearch
    masker: Masker
    places: LineagePlaces = LineagePlaces()

    async def find(self, asked: FindLineages, principal: Principal) -> LineageMatches:
        """Sessions that have something in common."""
        return await self.search.find(asked, principal)

    async def run(self, name: str, principal: Principal) -> LineageRun:
        """The run of a session's or lineage's id. NOT_FOUND."""
        one = await self._read(name, principal)
        # Payloads are looked through for secrets that words repeat: not on the loop.
        return run_of(await asyncio.to_thread(masked, one, self.masker), self.places)

    async def against(self, name: str, other: str, *, principal: Principal) -> LineageDiff:
        """What the two runs differ in. NOT_FOUND."""
        left, right = await self._read(name, principal), await self._read(other, principal)
        # Two large runs take a while, and nobody else is to wait for it.
        found = await asyncio.to_thread(shown_difference, left, right, masker=self.masker)
        return _told(found, left=left, right=right)

    async def _read(self, name: str, principal: Principal) -> Trajectory:
        session_id = name.partition(".")[0]
        if not is_session_id(session_id):
            message = (
                f"{name[:80]!r} is the id of no session and no lineage; a trace's or a call's"
                " leads to its sessions by GET /v1/lineage?id="
            )
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        text = await self.sessions.trajectory(session_id, principal)
        found = msgspec.json.decode(text, type=Trajectory)
        if name not in (session_id, found.lineage_id):
            raise AcpFailure(error(Reason.NOT_FOUND, f"there is no lineage {name[:80]!r}"))
        return found


def run_of(one: Trajectory, places: LineagePlaces) -> LineageRun:
    """The page of one trajectory, which is masked already."""
    return LineageRun(
        head=head_of(one),
        work=tuple(_work(one)),
        policies=_policies(one),
        deviations=one.lineage.deviations,
        rollouts=one.rollouts,
        calls=tuple(
            _call(list(rows), one.traceparent)
            for _, rows in groupby(one.calls, key=lambda row: row.call_id)
        ),
        trace=_trace(one, places),
        logs=_logs(one, places),
        feedback=one.feedback,
        rewards=one.rewards,
    )


def head_of(one: Trajectory) -> LineageHead:
    """Which run it is."""
    ended_ms = one.ended_at_ms
    return LineageHead(
        session_id=one.session_id,
        lineage_id=one.lineage_id,
        workflow=one.workflow,
        workflow_sha256=one.lineage.workflow_sha256,
        input_sha256=one.lineage.input_sha256,
        status=one.status.value,
        error=one.error.reason if one.error is not None else "",
        fell_back=one.fell_back,
        opened_at=one.opened_at,
        ended_at=one.ended_at,
        duration_ms=ended_ms - one.opened_at_ms if ended_ms is not None else None,
    )


def _work(one: Trajectory) -> Iterator[Work]:
    """What was intended, then what served without having been. A step with a pin of its own serves
    by that, else an action does."""
    intended = one.lineage.intended
    served: dict[str, dict[str, None]] = {}
    for row in one.calls:
        if row.component and not row.reused:
            step, who = f"step:{row.step}", f"{row.component}@{row.component_version}"
            work = step if step in intended or not row.action else f"action:{row.action}"
            served.setdefault(work, {})[who] = None
    for work, pin in intended.items():
        yield Work(work=work, intended=pin, served=tuple(served.pop(work, ())))
    for work, others in served.items():
        yield Work(work=work, served=tuple(others))


def _policies(one: Trajectory) -> dict[str, str]:
    """Those of the opening; a decision by another one is told by the step it was about."""
    found = dict(one.lineage.policies)
    steps = {row.call_id: row.step for row in one.calls}
    for decision in one.decisions:
        policy = decision.policy
        name = f"{policy.name}@{policy.version}#{policy.digest}"
        if name not in found.values():
            found[f"recovery of {steps.get(decision.call_id, decision.call_id)}"] = name
    return found


def _call(rows: list[Attempt], traceparent: str) -> CallLine:
    first = rows[0]
    return CallLine(
        call_id=first.call_id,
        step=first.step,
        loop=first.loop,
        sub_goal=first.sub_goal,
        role=first.role,
        action=first.action,
        reused_from=first.reused_from,
        attempts=() if first.reused else tuple(_attempt(row, traceparent) for row in rows),
    )


def _attempt(row: Attempt, traceparent: str) -> AttemptLine:
    was_sent = row.sent_at and parse_traceparent(traceparent) is not None
    return AttemptLine(
        attempt=row.attempt,
        component=f"{row.component}@{row.component_version}" if row.component else "",
        instance=row.instance,
        sent_at=row.sent_at,
        ended_at=row.ended_at,
        wait_ms=row.wait_ms,
        service_ms=row.service_ms,
        error=f"{row.error.reason}: {row.error.message}" if row.error else "",
        parameter_version=row.parameter_version,
        span_id=attempt_span(traceparent, row.call_id, attempt=row.attempt).span_id
        if was_sent
        else "",
    )


def _trace(one: Trajectory, places: LineagePlaces) -> TracePlace:
    parsed = parse_traceparent(one.traceparent)
    if parsed is None:
        return TracePlace()
    is_recorded = places.is_tracing and parsed.sampled
    return TracePlace(
        trace_id=parsed.trace_id,
        traceparent=one.traceparent,
        is_recorded=is_recorded,
        url=_filled(places.trace_url, one) if is_recorded else "",
    )


def _logs(one: Trajectory, places: LineagePlaces) -> LogPlace:
    """Every line about a session has its id in a field; its lineage's id begins with it."""
    file = f" {shlex.quote(places.log_file)}" if places.log_file else ""
    return LogPlace(
        filter=f"grep -F {one.session_id}{file}",
        file=places.log_file,
        url=_filled(places.log_url, one),
    )


def _filled(template: str, one: Trajectory) -> str:
    for name, text in (
        ("{trace_id}", trace_id_of(one.traceparent)),
        ("{session_id}", one.session_id),
        ("{lineage_id}", one.lineage_id),
    ):
        template = template.replace(name, text)
    return template


def _told(found: RunDiff, *, left: Trajectory, right: Trajectory) -> LineageDiff:
    return LineageDiff(
        left=head_of(left),
        right=head_of(right),
        differences=found.differences,
        parting=found.parting,
    )
