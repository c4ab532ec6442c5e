"""Watching what components do against the contracts of the workflows that use them (R14).

An observer of every event: it counts, and where a breach begins or ends it writes a row, an audit
entry and feedback on the session that showed it. What a breach does is asked at admission (`bar`).
Rows are durable, counts are not: after a restart a breach stands, and ends on fresh proof.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, FeedbackKind, Mode
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.session import Feedback, FeedbackTarget
from acp_spec.model.times import rfc3339
from gateway.board.audit import AuditLog
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    FeedbackGiven,
    OperationEnded,
    SessionEnded,
)
from gateway.engine.rejections import OUR_FEEDBACK
from gateway.engine.sla_samples import call_sample, pin_of, session_samples
from gateway.engine.states import CallState, SessionState
from gateway.governance import sla_judge
from gateway.governance.sla import OnBreach, Sla
from gateway.governance.sla_judge import Breach, Change, Demand, Standing
from gateway.governance.sla_window import Counts, Sample, Window
from gateway.runtime.kept_rows import kept_rows
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.tables import text_part
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics

log = get_log("gateway.contracts")

_KIND: Final = b"sla\0"
STANDINGS_MAX: Final = 10_000
"""Pairs of workflow version and component with counts in memory; the longest unused go first."""
ENDED_KEPT: Final = 1_000
"""Breaches that are over and can still be listed."""
SILENT_WINDOWS: Final = 10
"""A breach of whom nothing was heard for so long is over: nobody uses it, so nobody suffers."""
AUTHOR: Final = f"{OUR_FEEDBACK}sla"

Key = tuple[str, str]
"""(workflow@version, component@version)."""


class BreachRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One breach as people read it; without `until` it stands."""

    workflow: str
    component: str
    version: str
    on_breach: OnBreach
    broken: tuple[Demand, ...]
    message: str
    counts: Counts
    since: str
    since_ms: int
    window_ms: int
    until: str = ""
    ended_by: str = ""

    @property
    def pin(self) -> str:
        return f"{self.component}@{self.version}"

    @property
    def key(self) -> Key:
        return (self.workflow, self.pin)


class StandingRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was counted of a component within its window, and whether it is in breach."""

    workflow: str
    component: str
    version: str
    on_breach: OnBreach
    window_ms: int
    counts: Counts
    breach: str = ""


class Bar(msgspec.Struct, frozen=True):
    """Why a call may not be made now; `fall_back`: its session ends with its fallback."""

    error: AcpError
    fall_back: bool


class AskBar(Protocol):
    """Why a call of this session may not go to `pin` (name@version); None when it may."""

    def __call__(self, state: SessionState, call: CallState, *, pin: str) -> Bar | None: ...


def no_bar(state: SessionState, call: CallState, *, pin: str) -> Bar | None:
    """Where nobody watches."""
    return None


class _Seen(msgspec.Struct, kw_only=True):
    key: Key
    sla: Sla
    standing: Standing
    last_ms: int
    row: BreachRow | None = None


class SlaWatch:
    """The breaches of one gateway. `tell(session_id, event)` feeds an event to a session, later."""

    def __init__(
        self,
        store: Store,
        durable: Durable,
        *,
        audit: AuditLog,
        metrics: Metrics,
        now_ms: Callable[[], int],
    ) -> None:
        self._durable = durable
        self._audit = audit
        self._metrics = metrics
        self._now_ms = now_ms
        self._began_ms = now_ms()  # what an earlier run heard last is not known
        self._seen: OrderedDict[Key, _Seen] = OrderedDict()
        self._open: dict[Key, BreachRow] = {}
        self._ended: deque[BreachRow] = deque()
        self.tell: Callable[[str, FeedbackGiven], None] = lambda session_id, event: None
        self._handlers: dict[type, Callable[..., None]] = {
            AttemptStarted: self._attempt_started,
            AttemptEnded: self._call_ended,
            OperationEnded: self._call_ended,
            SessionEnded: self._session_ended,
        }
        for _, row in kept_rows(store, _KIND, kind=BreachRow):
            self._load(row)

    # ---- what happens ---------------------------------------------------------------------------

    @property
    def hears(self) -> frozenset[type]:
        return frozenset(self._handlers)

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        """An observer's: called behind every event. Cheap without an SLA."""
        if state.workflow is not None and state.workflow.contract.sla:
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(state, event)

    def bar(self, state: SessionState, call: CallState, *, pin: str) -> Bar | None:
        """Why this call may not go to this component now; None when it may."""
        found = self._find(state, pin)
        if found is None or found.row is None:
            return None
        if not sla_judge.is_barred(found.standing, found.sla, now_ms=self._now_ms()):
            return None
        self._metrics.sla_barred(found.row.workflow, found.row.component)
        falls_back = found.sla.on_breach is OnBreach.FALLBACK
        refusal = error(
            Reason.BREAKER_OPEN,
            f"{found.row.message}: no call of {call.created.step!r} goes there meanwhile",
            boundary=Boundary.GATEWAY,
            retry_after_ms=sla_judge.probe_every_ms(found.sla),
        )
        return Bar(refusal, falls_back and state.opened.mode is Mode.AUTOMATIC)

    def _attempt_started(self, state: SessionState, event: AttemptStarted) -> None:
        found = self._find(state, pin_of(event))
        if found is not None:
            found.standing = sla_judge.sent(found.standing, now_ms=event.at_ms)

    def _call_ended(self, state: SessionState, event: AttemptEnded | OperationEnded) -> None:
        call = state.calls[event.call_id]
        started = call.started(event.attempt)
        found = self._find(state, pin_of(started)) if started else None
        sample = call_sample(call, event, sla=found.sla) if found is not None else None
        if found is not None and sample is not None:
            change = self._observe(state, found, sample=sample)
            if change is Change.BEGAN:
                self._feedback(state, found, call_id=event.call_id)

    def _session_ended(self, state: SessionState, event: SessionEnded) -> None:
        for pin, sample in session_samples(state, event):
            found = self._find(state, pin)
            if found is None or found.sla.max_fallback_rate >= 1:
                continue
            if self._observe(state, found, sample=sample) is Change.BEGAN:
                self._feedback(state, found)

    # ---- what people see ------------------------------------------------------------------------

    def breaches(self) -> tuple[BreachRow, ...]:
        """Those that stand first, then those that ended last."""
        self._end_silent(self._now_ms())
        return (*self._open.values(), *reversed(self._ended))

    def standings(self) -> tuple[StandingRow, ...]:
        """Every component that was called lately under an SLA."""
        now_ms = self._now_ms()
        self._end_silent(now_ms)
        return tuple(
            StandingRow(
                workflow=workflow,
                component=one.sla.component,
                version=pin.rpartition("@")[2],
                on_breach=one.sla.on_breach,
                window_ms=one.sla.window_ms,
                counts=one.standing.window.at(now_ms).total,
                breach=one.row.message if one.row else "",
            )
            for (workflow, pin), one in self._seen.items()
        )

    @property
    def standing(self) -> int:
        """How many breaches stand now."""
        self._end_silent(self._now_ms())
        return len(self._open)

    # ---- inside ---------------------------------------------------------------------------------

    def _find(self, state: SessionState, pin: str) -> _Seen | None:
        if state.workflow is None or state.opened.twin_of:  # a twin's failures are for its rollout
            return None
        sla = state.workflow.contract.sla_of(pin.rpartition("@")[0])
        if sla is None:
            return None
        key = (state.opened.workflow, pin)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._new(key, sla, now_ms=state.now_ms)
            self._forget_some()
        else:
            self._seen.move_to_end(key)
        return found

    def _new(self, key: Key, sla: Sla, *, now_ms: int) -> _Seen:
        row = self._open.get(key)
        if row is None:
            return _Seen(key=key, sla=sla, standing=sla_judge.fresh(sla), last_ms=now_ms)
        breach = Breach(since_ms=row.since_ms, broken=row.broken, counts=row.counts)
        standing = Standing(window=Window(window_ms=sla.window_ms), breach=breach)
        return _Seen(key=key, sla=sla, standing=standing, last_ms=now_ms, row=row)

    def _forget_some(self) -> None:
        while len(self._seen) > STANDINGS_MAX:
            self._seen.popitem(last=False)  # a breach it had is in its row, and is found again

    def _observe(self, state: SessionState, found: _Seen, *, sample: Sample) -> Change | None:
        now_ms = state.now_ms
        found.standing, change = sla_judge.observe(
            found.standing, found.sla, sample=sample, now_ms=now_ms
        )
        found.last_ms = now_ms
        if change is Change.BEGAN:
            self._begin(found, now_ms=now_ms)
        elif change is Change.ENDED and found.row is not None:
            self._end(found.row, by="proof", now_ms=now_ms)
            found.row = None
        return change

    def _begin(self, found: _Seen, *, now_ms: int) -> None:
        breach, sla, (workflow, pin) = found.standing.breach, found.sla, found.key
        assert breach is not None, "it has just begun"
        row = BreachRow(
            workflow=workflow,
            component=sla.component,
            version=pin.rpartition("@")[2],
            on_breach=sla.on_breach,
            broken=breach.broken,
            message=sla_judge.told(sla, breach),
            counts=breach.counts,
            since=rfc3339(now_ms),
            since_ms=now_ms,
            window_ms=sla.window_ms,
        )
        found.row = self._open[found.key] = row
        self._write(row, "contract.breach_began")
        for demand in breach.broken:
            self._metrics.sla_breached(workflow, sla.component, demand=demand.value)
        log.warning("sla_breached", workflow=workflow, component=pin, why=row.message)

    def _end(self, row: BreachRow, *, by: str, now_ms: int) -> None:
        ended = msgspec.structs.replace(row, until=rfc3339(now_ms), ended_by=by)
        self._open.pop(row.key, None)
        self._keep_ended(ended)
        self._write(ended, "contract.breach_ended")
        log.info("sla_kept_again", workflow=row.workflow, component=row.pin, by=by)

    def _write(self, row: BreachRow, action: str) -> None:
        self._durable.put(Table.GOVERNANCE, _row_key(row), msgspec.json.encode(row))
        details = {"message": row.message, "on_breach": row.on_breach, "ended_by": row.ended_by}
        subject = f"sla:{row.workflow}/{row.pin}"
        self._audit.record(action, subject, actor="gateway", tenant="", details=details)

    def _keep_ended(self, row: BreachRow) -> None:
        self._ended.append(row)
        while len(self._ended) > ENDED_KEPT:
            self._durable.delete(Table.GOVERNANCE, _row_key(self._ended.popleft()))

    def _end_silent(self, now_ms: int) -> None:
        for key, row in tuple(self._open.items()):
            found = self._seen.get(key)
            heard_ms = found.last_ms if found else max(row.since_ms, self._began_ms)
            if now_ms - heard_ms > SILENT_WINDOWS * row.window_ms:
                self._end(row, by="silence", now_ms=now_ms)
                self._seen.pop(key, None)

    def _feedback(self, state: SessionState, found: _Seen, *, call_id: str = "") -> None:
        """On the session that showed it: its trajectory says what was known then."""
        assert found.row is not None, "a breach has just begun"
        comment = found.row.message
        given = Feedback(
            kind=FeedbackKind.COMMENT,
            comment=comment,
            target=FeedbackTarget(call_id=call_id),
            author=AUTHOR,
            time=found.row.since,
            feedback_id=f"{AUTHOR}/{found.row.pin}/{found.row.since_ms}",
        )
        event = FeedbackGiven(
            at_ms=found.row.since_ms, feedback=given, feedback_id=given.feedback_id
        )
        self.tell(state.session_id, event)

    def _load(self, row: BreachRow) -> None:
        if row.until:
            self._ended.append(row)
        else:
            self._open[row.key] = row


def _row_key(row: BreachRow) -> bytes:
    """By time, so that the oldest are found first."""
    since = row.since_ms.to_bytes(8, "big")
    return _KIND + since + text_part(row.workflow) + row.pin.encode()
