"""A session in three shards - plan, execution, feedback - as small rows beside its journal (R07).

A row holds no payload (those live once, in the journal): what a list page, a check or an operator
needs. Each row is rewritten only when its shard's counter moved; `acp sessions replay` compares
them with the journal.
"""

import msgspec

from acp_spec.model.enums import Mode, SessionStatus, SideEffect, StepStatus, Word
from acp_spec.model.session import SessionView, StepView
from gateway.engine.states import CallState, Phase, SessionState
from gateway.engine.views import times


class Shard(Word):
    PLAN = "plan"
    EXECUTION = "execution"
    FEEDBACK = "feedback"


class PlanRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the session stands. Times in milliseconds since the epoch."""

    lineage_id: str
    workflow: str
    status: SessionStatus
    mode: Mode
    version: str
    fell_back: bool = False
    steps: dict[str, StepStatus] = {}
    labels: dict[str, str] = {}
    opened_at_ms: int
    deadline_at_ms: int = 0
    ended_at_ms: int | None = None

    def view(self, session_id: str) -> SessionView:
        """The session as a list page shows it."""
        return SessionView(
            session_id=session_id,
            lineage_id=self.lineage_id,
            workflow=self.workflow,
            status=self.status,
            state_version=self.version,
            fell_back=self.fell_back,
            steps=tuple(StepView(name=n, status=status) for n, status in self.steps.items()),
            mode=self.mode,
            labels=self.labels,
            times=times(self.opened_at_ms, self.deadline_at_ms, ended_at_ms=self.ended_at_ms),
        )


class ExecutionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One settled call."""

    call_id: str
    step: str
    sub_goal: str = ""
    action: str = ""
    component: str = ""
    status: StepStatus
    side_effect: SideEffect
    attempts: int = 0
    reason: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    shard: Shard
    key: str
    data: bytes


def plan_row(state: SessionState) -> Row:
    """The session as it stands: no payloads, no error text."""
    opened = state.opened
    row = PlanRow(
        lineage_id=opened.lineage_id,
        workflow=opened.workflow,
        status=state.status,
        mode=opened.mode,
        version=state.version_text,
        fell_back=state.fell_back,
        steps={name: entry.status for name, entry in state.steps.items()},
        labels={} if state.erased else opened.labels,
        opened_at_ms=opened.at_ms,
        deadline_at_ms=state.deadline_at_ms,
        ended_at_ms=state.ended_at_ms,
    )
    return Row(shard=Shard.PLAN, key="", data=msgspec.json.encode(row))


def execution_row(call: CallState) -> Row:
    """The call as it settled."""
    created = call.created
    row = ExecutionRow(
        call_id=created.call_id,
        step=created.step,
        sub_goal=created.sub_goal,
        action=created.action,
        component=created.component,
        status=call.status,
        side_effect=call.side_effect,
        attempts=len(call.attempts),
        reason=call.error.reason if call.error else "",
    )
    return Row(shard=Shard.EXECUTION, key=created.call_id, data=msgspec.json.encode(row))


def changed(before: SessionState | None, after: SessionState) -> list[Row]:
    """The rows that these events changed; every row of the state where there was none before."""
    rows: list[Row] = []
    old = before.version if before else (0, 0, 0)
    moved = after.terminal and after.version != old  # judged, or answered late, after the end
    if after.version[0] != old[0] or moved or (before and before.status is not after.status):
        rows.append(plan_row(after))
    ending = before is not None and after.ending is not before.ending  # settles calls by itself
    if after.version[1] != old[1] or ending:
        known = before.calls if before else {}
        for call_id, call in after.calls.items():
            if call.phase is Phase.SETTLED and known.get(call_id) is not call:
                rows.append(execution_row(call))
    if after.version[2] != old[2]:
        rows.extend(_feedback_rows(before, after))
    return rows


def _feedback_rows(before: SessionState | None, after: SessionState) -> list[Row]:
    known = before.feedback if before else {}
    rows = []
    for key, entry in after.feedback.items():
        if known.get(key) is not entry:
            name = "|".join(str(part) for part in key)
            feedback = entry.given.feedback
            text = {"feedback_id": entry.given.feedback_id, "score": feedback.score}
            data = msgspec.json.encode({**text, "version": entry.version, "time": feedback.time})
            rows.append(Row(shard=Shard.FEEDBACK, key=name, data=data))
    return rows
