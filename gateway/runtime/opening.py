"""Opening sessions: the request becomes `Opened`, with its pins, lineage and key (SPEC section 6).

`session_key` is unique per tenant: the same body again is the same session, another a conflict. A
key is taken in the batch that opens its session, so a crash leaves both or neither.
"""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json import encode
from acp_spec.model.enums import Boundary, Mode
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import lineage_id, session_id, time_ms_of
from acp_spec.model.payload import payload
from acp_spec.model.semantics import MappedValue
from acp_spec.model.session import OpenSession
from gateway.engine.catalog import Catalog
from gateway.engine.contract_checks import input_problem
from gateway.engine.definition import Workflow
from gateway.engine.events import BEHAVIOUR, Opened
from gateway.engine.pins import CHOICE, pins
from gateway.engine.policies import policies_of
from gateway.governance.backoff import Backoff
from gateway.governance.fallback_track import Route
from gateway.runtime.clock import Chance
from gateway.runtime.driver import Driver
from gateway.runtime.fallbacks import Fallbacks
from gateway.runtime.intake import Asking, Intake
from gateway.runtime.principal import NO_TRACE, Principal, Trace
from gateway.runtime.rollout_traffic import Intent, Opening, RolloutTraffic
from gateway.runtime.unknown_values import INPUT, Seen
from gateway.runtime.workflows import Workflows
from gateway.stores.ports import Store, Table
from gateway.stores.tables import session_key_row
from gateway.telemetry.spans import parse_traceparent, session_span

# A key stands in an index row and in messages; longer ones are documents by mistake.
KEY_CHARACTERS_MAX: Final = 256
# Labels travel in the context of every call of the session.
LABELS_MAX: Final = 64
LABEL_CHARACTERS_MAX: Final = 1_024


class OpeningLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and defaults of new sessions; `node` is this gateway's number in their ids."""

    node: int
    max_open_sessions: int
    session_deadline_ms: int
    max_session_deadline_ms: int
    retry_budget: int
    cancel_grace_ms: int
    backoff: Backoff
    sample_ratio: float


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a used session_key stands for."""

    session_id: str
    digest: str


OnRefusedValues = Callable[[Seen, tuple[MappedValue, ...]], None]


def _nobody_keeps(where: Seen, values: tuple[MappedValue, ...], /) -> None:
    pass


class Openings:
    """Opens sessions of one gateway."""

    def __init__(
        self,
        driver: Driver,
        workflows: Workflows,
        *,
        store: Store,
        chance: Chance,
        limits: OpeningLimits,
    ) -> None:
        self._driver = driver
        self._workflows = workflows
        self._store = store
        self._chance = chance
        self._limits = limits
        self._unwritten_keys: dict[bytes, KeyRow] = {}
        self.retry_budget: Callable[[], int] = lambda: limits.retry_budget
        self.backoff: Callable[[], Backoff] = lambda: limits.backoff
        self.closed = False
        """Set when the gateway stops: what is open may end, nothing new begins."""
        self.on_refused_values: OnRefusedValues = _nobody_keeps
        """Told of values that kept a session from opening: no event ever tells of them."""
        self.fallbacks: Fallbacks | None = None
        """Asked before the gate: do the rules of a business fallback answer this session? Set
        once, when the parts are put together."""
        self.traffic: RolloutTraffic | None = None
        """Asked which version a session gets while a rollout runs; the assembly puts it here."""
        self.intake: Intake | None = None
        """Refuses what would only lengthen a queue; set once, when the parts are put together."""
        self._pins_of: Catalog | None = None
        self._pins_by_workflow: dict[str, dict[str, str]] = {}

    def open(self, request: OpenSession, principal: Principal, *, trace: Trace) -> tuple[str, bool]:
        """The session's id, and whether it is new. Durable after the committer's next sync."""
        check_key("session_key", request.session_key)
        _check_labels(request.labels)
        self._driver.committer.refuse_if_failed()
        digest = _digest(request)
        known = self._known(request, principal, digest=digest)
        if known is not None:
            return known, False
        if self.closed:
            message = "the gateway is shutting down: open the session at another, or in a moment"
            raise AcpFailure(
                error(Reason.OVERLOADED, message, boundary=Boundary.GATEWAY, retry_after_ms=1_000)
            )
        if self._driver.open_sessions >= self._limits.max_open_sessions:
            message = f"{self._limits.max_open_sessions} sessions are open; try again later"
            raise AcpFailure(
                error(Reason.OVERLOADED, message, boundary=Boundary.GATEWAY, retry_after_ms=1_000)
            )
        workflow = self._workflow(request, principal)
        found = self._driver.meaning.of_input(workflow, request.input)
        if found.refusal is not None:
            reference = f"{workflow.name}@{workflow.version}" if workflow else ""
            where = Seen(tenant=principal.tenant, workflow=reference, field=INPUT)
            self.on_refused_values(where, found.values)
            raise AcpFailure(found.refusal)
        if found.values:
            request = msgspec.structs.replace(request, input=payload(found.text))
        broken = input_problem(workflow, bytes(request.input))
        if broken is not None:
            raise AcpFailure(broken)
        intent = self._intent(request, principal, workflow=workflow)
        way = self._way_in(request, principal, intent=intent)
        try:
            opened = self._opened(request, principal, trace=trace, intent=intent, digest=digest)
            if found.values or found.in_domain:
                opened = msgspec.structs.replace(
                    opened, mapped=found.values, in_domain=found.in_domain
                )
            if self.fallbacks is not None:
                opened = self.fallbacks.routed(intent.workflow, opened, way=way)
            self._driver.open(intent.workflow, opened)
        except BaseException:
            if self.intake is not None:
                self.intake.withdrawn(intent.session_id)
            raise
        if request.session_key:
            self._take_key(request.session_key, opened)
        return opened.session_id, True

    def replayed(
        self, request: OpenSession, principal: Principal, *, swap: Callable[[Intent], Intent]
    ) -> tuple[Workflow, Opened]:
        """What opens a replay of a recorded session, on the versions that `swap` chooses."""
        _check_labels(request.labels)
        self._driver.committer.refuse_if_failed()
        workflow = self._workflows.resolve(request.workflow)
        broken = input_problem(workflow, bytes(request.input))
        if broken is not None:
            raise AcpFailure(broken)
        now_ms = self._driver.clock.now_ms()
        new_id = session_id(now_ms, self._limits.node, random_64=self._chance.random_64())
        pinned = self._pins(workflow, request.labels)
        intent = swap(Intent(session_id=new_id, workflow=workflow, pins=pinned))
        opened = self._opened(request, principal, trace=NO_TRACE, intent=intent, digest="")
        return workflow, opened

    def _way_in(self, request: OpenSession, principal: Principal, *, intent: Intent) -> Route:
        """Past the gate, unless rules answer: they call nobody, whatever queue stands there. A
        probe that is not let in is none, and the rules answer that session, too."""
        way = Route.AGENTIC
        if self.fallbacks is not None:
            way = self.fallbacks.way(intent.workflow, tenant=principal.tenant, mode=request.mode)
        if way is Route.RULES:
            return way
        try:
            self._pass_gate(request, principal, intent=intent)
        except AcpFailure:
            if way is Route.AGENTIC:
                raise
            return Route.RULES
        return way

    def _pass_gate(self, request: OpenSession, principal: Principal, *, intent: Intent) -> None:
        """Count it in, or raise OVERLOADED or RATE_LIMITED: nothing of it exists yet.

        A MANUAL session takes its steps when its client does, if at all: no forecast knows them.
        """
        if self.intake is not None and request.mode is not Mode.MANUAL:
            self.intake.admit(
                Asking(
                    session_id=intent.session_id,
                    tenant=principal.tenant,
                    priority=request.priority,
                    deadline_ms=self._deadline_ms(request, intent.workflow),
                    workflow=intent.workflow,
                    pins=intent.pins,
                )
            )

    def _workflow(self, request: OpenSession, principal: Principal) -> Workflow | None:
        if request.workflow:
            workflow = self._workflows.resolve(request.workflow)
            if "@" in request.workflow and not self._is_rolled_out(workflow):
                self._workflows.permit_session(workflow, principal=principal)
            return workflow
        if request.mode is Mode.MANUAL:
            return None
        message = "workflow: name the workflow to run (or open the session with mode MANUAL)"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))

    def _is_rolled_out(self, workflow: Workflow) -> bool:
        """A rollout gives it to callers: it asked the board when it began to."""
        return self.traffic is not None and self.traffic.serves(workflow)

    def _known(self, request: OpenSession, principal: Principal, *, digest: str) -> str | None:
        if not request.session_key:
            return None
        if "\0" in request.session_key:
            message = "session_key: must not contain the character U+0000"
            raise AcpFailure(error(Reason.INVALID_REQUEST, message))
        row = session_key_row(principal.tenant, request.session_key)
        found = self._unwritten_keys.get(row)
        if found is None:
            stored = self._store.get(Table.INDEX, row)
            found = msgspec.json.decode(stored, type=KeyRow) if stored is not None else None
        if found is None:
            return None
        if found.digest != digest:
            message = f"session_key {request.session_key!r} was used with another request"
            raise AcpFailure(error(Reason.ALREADY_EXISTS, message))
        return found.session_id

    def _take_key(self, session_key: str, opened: Opened) -> None:
        row = session_key_row(opened.tenant, session_key)
        key = KeyRow(session_id=opened.session_id, digest=opened.request_digest)
        self._unwritten_keys[row] = key
        committer = self._driver.committer
        committer.put(Table.INDEX, row, msgspec.json.encode(key))

        def written() -> None:
            self._unwritten_keys.pop(row, None)

        committer.after_write(written)

    def _opened(
        self,
        request: OpenSession,
        principal: Principal,
        *,
        trace: Trace,
        intent: Intent,
        digest: str,
    ) -> Opened:
        limits, new_id = self._limits, intent.session_id
        workflow, intended = intent.workflow, intent.pins
        policies = self._policies(intent)
        input_sha256 = hashlib.sha256(bytes(request.input)).hexdigest()
        workflow_digest = workflow.source_digest if workflow else ""
        basis = msgspec.json.encode([workflow_digest, intended, input_sha256, policies])
        caller = parse_traceparent(trace.traceparent)
        span = session_span(new_id, caller, ratio=limits.sample_ratio)
        return Opened(
            at_ms=time_ms_of(new_id),
            session_id=new_id,
            lineage_id=lineage_id(new_id, basis),
            behaviour=BEHAVIOUR,
            tenant=principal.tenant,
            workflow=f"{workflow.name}@{workflow.version}" if workflow else "",
            workflow_digest=workflow_digest,
            mode=request.mode,
            input=request.input,
            input_sha256=input_sha256,
            deadline_ms=self._deadline_ms(request, workflow),
            priority=request.priority,
            labels=request.labels,
            session_key=request.session_key,
            request_digest=digest,
            pins=intended,
            policies=policies,
            retry_budget=self.retry_budget(),
            cancel_grace_ms=limits.cancel_grace_ms,
            traceparent=span.header(),
            caller_span=caller.span_id if caller else "",
            tracestate=trace.tracestate,
            baggage=trace.baggage,
            rollouts=intent.marks,
            recovery_params=intent.recovery_params,
        )

    def _intent(
        self, request: OpenSession, principal: Principal, *, workflow: Workflow | None
    ) -> Intent:
        """The session's id, workflow and pins; while a rollout runs it has a say in them."""
        now_ms = self._driver.clock.now_ms()
        new_id = session_id(now_ms, self._limits.node, random_64=self._chance.random_64())
        pinned = self._pins(workflow, request.labels)
        intent = Intent(session_id=new_id, workflow=workflow, pins=pinned)
        if self.traffic is None or self.traffic.is_idle:
            return intent
        opening = Opening(
            tenant=principal.tenant,
            request=request,
            pins_of=lambda other: self._pins(other, request.labels),
        )
        return self.traffic.intended(intent, opening, catalog=self._driver.catalog())

    def _pins(self, workflow: Workflow | None, labels: dict[str, str]) -> dict[str, str]:
        """The pins of this moment. Equal while the catalog is the same, unless a label chooses."""
        catalog = self._driver.catalog()
        if any(name.startswith(CHOICE) for name in labels):
            return pins(workflow, catalog, labels=labels)
        if catalog is not self._pins_of:
            self._pins_of, self._pins_by_workflow = catalog, {}
        key = workflow.source_digest if workflow else ""
        found = self._pins_by_workflow.get(key)
        if found is None:
            found = self._pins_by_workflow[key] = pins(workflow, catalog, labels={})
        return found

    def _policies(self, intent: Intent) -> dict[str, str]:
        return policies_of(intent.workflow, intent.recovery_params, defaults=self.backoff())

    def _deadline_ms(self, request: OpenSession, workflow: Workflow | None) -> int:
        limits = self._limits
        wanted = request.deadline_ms or (workflow.limits.deadline_ms if workflow else 0)
        if not wanted:
            manual = request.mode is Mode.MANUAL
            wanted = limits.max_session_deadline_ms if manual else limits.session_deadline_ms
        return min(wanted, limits.max_session_deadline_ms)


def _digest(request: OpenSession) -> str:
    """Equal for equal requests: white space between tokens says nothing, every token counts."""
    text = encode(request)
    if request.session_key:
        text = msgspec.json.format(text, indent=-1)
    return hashlib.sha256(text).hexdigest()


def check_key(place: str, key: str) -> None:
    """INVALID_REQUEST for a key that is too long to be one."""
    if len(key) > KEY_CHARACTERS_MAX:
        message = f"{place}: {len(key)} characters; at most {KEY_CHARACTERS_MAX} are a key"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))


def _check_labels(labels: dict[str, str]) -> None:
    longest = max((len(text) for pair in labels.items() for text in pair), default=0)
    if len(labels) > LABELS_MAX or longest > LABEL_CHARACTERS_MAX:
        message = (
            f"labels: at most {LABELS_MAX}, each text at most {LABEL_CHARACTERS_MAX} characters"
        )
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))
