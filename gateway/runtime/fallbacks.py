"""Business fallbacks at work: which way a session goes, and what its end says (mission R15).

Asked at the opening, told of every end. Rules answer within the batch that opens the session, and
nobody is called. How a workflow stands for a tenant is one durable row, written in the batch of the
end that changed it: a restart stands where the gateway stood.
"""

from collections.abc import Container
from typing import Final

import msgspec

from acp_spec.model.enums import Mode, SessionStatus
from acp_spec.model.trajectory import FallbackRow
from gateway.engine.contract_checks import output_problem
from gateway.engine.definition import Workflow
from gateway.engine.events import AnyEvent, Opened, SessionEnded
from gateway.engine.states import SessionState
from gateway.governance import fallback_track
from gateway.governance.business_fallback import Answer, BusinessFallback, Case, answer
from gateway.governance.fallback_track import (
    Ended,
    Outcome,
    Route,
    SessionEnd,
    Standing,
    Track,
    outcome_of,
)
from gateway.runtime.clock import Clock
from gateway.runtime.kept_rows import kept_rows
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.tables import text_part
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics

log = get_log("gateway.fallbacks")

KEPT_EVERY_MS: Final = 1_000
"""Of a busy workflow one session a second is kept for drills: a sample, not a copy of the load."""
_KIND: Final = b"fallback\0"
_TRACK: Final = b"track"
_RECENT: Final = b"recent"

Key = tuple[str, str]
"""(workflow name, tenant)."""


class Recent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Sessions whose inputs a drill answers again, the newest first. Names only: the inputs stay
    in their sealed journals, and go with them."""

    sessions: tuple[str, ...] = ()
    at_ms: int = 0


class Fallbacks:
    """Every workflow with rules of one gateway, per tenant."""

    def __init__(
        self,
        store: Store,
        durable: Durable,
        *,
        clock: Clock,
        metrics: Metrics,
        session_deadline_ms: int,
    ) -> None:
        self._durable = durable
        self._clock = clock
        self._metrics = metrics
        self._session_deadline_ms = session_deadline_ms
        self._tracks: dict[Key, Track] = {}
        self._recent: dict[Key, Recent] = {}
        for key, track in kept_rows(store, _KIND, kind=Track, ending=_TRACK):
            self._tracks[_key_of(key)] = track
        for key, recent in kept_rows(store, _KIND, kind=Recent, ending=_RECENT):
            self._recent[_key_of(key)] = recent

    # ---- for sessions ----------------------------------------------------------------------------

    def way(self, workflow: Workflow | None, *, tenant: str, mode: Mode) -> Route:
        """The way of a session that is about to open. Changes nothing: it may not open yet."""
        rules = rules_of(workflow)
        if workflow is None or rules is None or mode is Mode.MANUAL:
            return Route.AGENTIC
        track = self._tracks.get((workflow.name, tenant), Track())
        return fallback_track.check(track, rules.terms)

    def routed(self, workflow: Workflow | None, opened: Opened, *, way: Route) -> Opened:
        """The opening as it is journaled: as it was, as a probe, or answered by the rules."""
        rules = rules_of(workflow)
        if workflow is None or rules is None:
            return opened
        key = (workflow.name, opened.tenant)
        track = self._tracks.get(key, Track())
        if track.trips:
            opened = msgspec.structs.replace(opened, fallback_trips=track.trips)
        if way is Route.AGENTIC:
            return opened
        self._tracks[key] = fallback_track.take(track)
        self._metrics.fallback_routed(workflow.name, way.value)
        if way is Route.PROBE:
            row = FallbackRow(probe=True, version=rules.version)
            return msgspec.structs.replace(opened, fallback=row)
        found = answered(workflow, rules, case=case_of(opened))
        row = FallbackRow(rule=found.rule, version=rules.version)
        return msgspec.structs.replace(
            opened,
            fallback=row,
            fallback_output=found.output,
            fallback_error=found.error,
            rollouts=(),  # no version was at work: it counts for none
        )

    @property
    def hears(self) -> frozenset[type]:
        return frozenset({SessionEnded})

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        """An end of a session whose workflow has rules (the driver's observer)."""
        if not isinstance(event, SessionEnded):
            return
        workflow, opened = state.workflow, state.opened
        rules = rules_of(workflow)
        if workflow is None or rules is None or opened.mode is Mode.MANUAL:
            return
        key = (workflow.name, opened.tenant)
        if event.status is SessionStatus.SUCCEEDED:
            self._keep(key, opened.session_id, most=rules.drill.keep)
        ended = Ended(
            route=route_of(opened),
            outcome=self._outcome(state, event, rules=rules),
            trips=opened.fallback_trips,
            at_ms=event.at_ms,
        )
        before = self._tracks.get(key, Track())
        after = fallback_track.observe(before, rules.terms, ended=ended)
        if after is not before:
            self._put(key, after)
            self._tell(key, before, after=after, state=state)

    def _outcome(
        self, state: SessionState, event: SessionEnded, *, rules: BusinessFallback
    ) -> Outcome:
        opened, workflow = state.opened, state.workflow
        due_ms = workflow.limits.deadline_ms if workflow else 0
        wanted_ms = due_ms or self._session_deadline_ms
        end = SessionEnd(
            status=event.status,
            error=event.error,
            fell_back=event.fell_back,
            shortened=0 < opened.deadline_ms < wanted_ms,
        )
        return outcome_of(end, rules.counts)

    def _tell(self, key: Key, before: Track, *, after: Track, state: SessionState) -> None:
        if before.standing is after.standing:
            return
        self._metrics.fallback_changed(key[0], after.standing.value)
        say = log.warning if after.standing is Standing.RULES else log.info
        say(
            "fallback_answers" if after.standing is Standing.RULES else "fallback_over",
            workflow=key[0],
            tenant=key[1],
            failures=after.failures,
            session_id=state.session_id,
            lineage_id=state.opened.lineage_id,
            reason=state.error.reason if state.error else "",
        )

    # ---- for people and drills -------------------------------------------------------------------

    def track(self, workflow: str, tenant: str) -> Track:
        """How this workflow stands for this tenant."""
        return self._tracks.get((workflow, tenant), Track())

    def recent(self, workflow: str, tenant: str) -> tuple[str, ...]:
        """Sessions whose inputs are kept for drills."""
        return self._recent.get((workflow, tenant), Recent()).sessions

    def tenants(self, workflow: str) -> frozenset[str]:
        """Those who have had sessions of this workflow end."""
        keys = (*self._recent, *self._tracks)  # of failures alone no input is kept
        return frozenset(tenant for name, tenant in keys if name == workflow)

    def answering(self, workflows: Container[str]) -> int:
        """How many of these, counted per tenant, are answered by their rules now. A workflow that
        has no rules any more still has its track: the next version may have some again."""
        return sum(
            track.standing is Standing.RULES and name in workflows
            for (name, _), track in self._tracks.items()
        )

    # ---- inside ----------------------------------------------------------------------------------

    def _keep(self, key: Key, session_id: str, *, most: int) -> None:
        """Its input was answered, so it is one that can be. What nobody answered may be nonsense of
        one client, and no fault of the rules."""
        now_ms = self._clock.now_ms()
        before = self._recent.get(key)
        if before is not None and 0 <= now_ms - before.at_ms < KEPT_EVERY_MS:  # clocks go back
            return
        kept = (session_id, *(before.sessions if before else ()))[:most]
        row = self._recent[key] = Recent(sessions=kept, at_ms=now_ms)
        self._durable.put(Table.GOVERNANCE, _row(key, _RECENT), msgspec.json.encode(row))

    def _put(self, key: Key, track: Track) -> None:
        self._tracks[key] = track
        self._durable.put(Table.GOVERNANCE, _row(key, _TRACK), msgspec.json.encode(track))


def rules_of(workflow: Workflow | None) -> BusinessFallback | None:
    """The rules of a workflow's contract, if it has any."""
    return workflow.contract.fallback if workflow is not None else None


def route_of(opened: Opened) -> Route:
    """The way that a session went."""
    if opened.fallback is None:
        return Route.AGENTIC
    return Route.PROBE if opened.fallback.probe else Route.RULES


def case_of(opened: Opened) -> Case:
    """What the rules may know of a session."""
    return Case(
        input=opened.input,
        tenant=opened.tenant,
        workflow=opened.workflow,
        labels=opened.labels,
        priority=opened.priority,
    )


def answered(workflow: Workflow, rules: BusinessFallback, *, case: Case) -> Answer:
    """The rules' answer, held against the contract's output schema like any other output."""
    found = answer(rules, case)
    if found.error is not None:
        return found
    breach = output_problem(workflow.contract, bytes(found.output))
    return found if breach is None else Answer(rule=found.rule, error=breach)


def _row(key: Key, kind: bytes) -> bytes:
    return _KIND + text_part(key[0]) + text_part(key[1]) + kind


def _key_of(row: bytes) -> Key:
    workflow, tenant, _ = row.split(b"\0")
    return workflow.decode(), tenant.decode()
