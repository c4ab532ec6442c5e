"""Events as metrics and spans: one place maps the journal's vocabulary to telemetry's (R21, R23).

Called for every event right after it is applied; it must be cheap and never raise. Ids are never
labels: they ride as exemplars and as attributes of spans, which `spanning` makes.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from acp_spec.model.enums import SessionStatus
from gateway.engine import fallback_blame
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    Decided,
    Deferred,
    Late,
    Opened,
    OperationEnded,
    Refused,
    SessionEnded,
    StepEnded,
)
from gateway.engine.sla_samples import service_ms_of
from gateway.engine.states import SessionState
from gateway.runtime import spanning
from gateway.runtime.driver import Observer
from gateway.telemetry.instruments import Example
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import AttemptMeasure, Metrics
from gateway.telemetry.spans import NoSpans, SpanRecord, SpanSink, TraceParent

log = get_log("gateway.sessions")
"""What went wrong, by lineage; what went well is for metrics and traces."""


Seen = Callable[[SessionState, AnyEvent], None]


SpanOf = Callable[..., SpanRecord | None]
"""Makes the span of an event: `(state, event, session=...)`."""


@runtime_checkable
class Selective(Protocol):
    """An observer that wants to hear of some types of events only."""

    @property
    def hears(self) -> frozenset[type]: ...

    def seen(self, state: SessionState, event: AnyEvent) -> None: ...


class Observers:
    """Several observers as the one that the driver has, each told of what it wants to hear, in this
    order. Nobody is told of a twin: it is nobody's session, and its rollout counts it."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = [
            (one.seen, one.hears if isinstance(one, Selective) else None) for one in observers
        ]
        self._of_type: dict[type, tuple[Seen, ...]] = {}

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        if state.opened.twin_of:
            return
        kind = type(event)
        told = self._of_type.get(kind)
        if told is None:
            told = self._of_type[kind] = tuple(
                seen for seen, hears in self._observers if hears is None or kind in hears
            )
        for seen in told:
            seen(state, event)


class Telemetry:
    """The driver's observer."""

    def __init__(self, metrics: Metrics, spans: SpanSink) -> None:
        self._metrics = metrics
        self._spans = spans
        self._tracing = not isinstance(spans, NoSpans)
        self._handlers: dict[type, Callable[..., None]] = {
            Opened: self._opened,
            AttemptEnded: self._attempt_ended,
            Refused: self._refused,
            Deferred: self._deferred,
            Decided: self._decided,
            SessionEnded: self._session_ended,
        }
        if self._tracing:
            self._handlers |= {
                StepEnded: partial(self._spanned, span_of=spanning.of_step),
                OperationEnded: partial(self._spanned, span_of=spanning.of_operation),
                Late: partial(self._spanned, span_of=spanning.of_late),
            }

    @property
    def hears(self) -> frozenset[type]:
        return frozenset(self._handlers)

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(state, event)

    def _opened(self, state: SessionState, event: Opened) -> None:
        self._metrics.session_opened(event.workflow)

    def _refused(self, state: SessionState, event: Refused) -> None:
        self._metrics.refused(event.error.reason)

    def _deferred(self, state: SessionState, event: Deferred) -> None:
        self._metrics.deferred(event.policy)

    def _decided(self, state: SessionState, event: Decided) -> None:
        decision = event.decision
        self._metrics.decided(decision.trigger.value, decision.chosen.value)

    def _attempt_ended(self, state: SessionState, event: AttemptEnded) -> None:
        call = state.calls[event.call_id]
        started = call.started(event.attempt)
        if started is None:
            return
        outcome = "SUPERSEDED" if event.superseded_by else "OK"
        if event.error is not None and not event.superseded_by:
            outcome = event.error.reason
            log.info(
                "attempt_failed",
                session_id=state.session_id,
                lineage_id=state.opened.lineage_id,
                call_id=event.call_id,
                attempt=event.attempt,
                component=started.component,
                reason=outcome,
                side_effect=event.side_effect.value,
            )
        service_ms = service_ms_of(call, event)
        self._metrics.attempt_ended(
            AttemptMeasure(
                component=started.component,
                outcome=outcome,
                wait_ms=started.wait_ms + max(0, event.at_ms - started.at_ms - service_ms),
                service_ms=service_ms,
                example=_example(state),
            )
        )
        session = self._recorded(state)
        if session is not None:
            self._offer(spanning.of_attempt(state, event, session=session, outcome=outcome))

    def _spanned(self, state: SessionState, event: AnyEvent, *, span_of: SpanOf) -> None:
        session = self._recorded(state)
        if session is not None:
            self._offer(span_of(state, event, session=session))

    def _session_ended(self, state: SessionState, event: SessionEnded) -> None:
        opened = state.opened
        open_ms = event.at_ms - opened.at_ms
        self._metrics.session_ended(
            opened.workflow, event.status.value, open_ms=open_ms, example=_example(state)
        )
        for component, to_blame in fallback_blame.of_session(state):
            self._metrics.took_part(component, to_blame=to_blame)
        if event.status is not SessionStatus.SUCCEEDED:
            log.info(
                "session_ended",
                session_id=opened.session_id,
                lineage_id=opened.lineage_id,
                workflow=opened.workflow,
                status=event.status.value,
                reason=event.error.reason if event.error else "",
            )
        session = self._recorded(state)
        if session is not None:
            for span in spanning.of_session(state, event, session=session):
                self._offer(span)

    def _recorded(self, state: SessionState) -> TraceParent | None:
        return spanning.recorded(state) if self._tracing else None

    def _offer(self, span: SpanRecord | None) -> None:
        if span is not None:
            self._spans.offer(span)


def _example(state: SessionState) -> Example:
    return state.opened.traceparent, state.opened.lineage_id
