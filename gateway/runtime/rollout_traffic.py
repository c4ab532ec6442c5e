"""Sessions and rollouts: who gets which version at the opening, and what each end says of it.

At the opening a session's place in every running rollout is decided and pinned; without a rollout
nothing of this is asked. At its end it is counted, or - in canary and shadow - its twin is run on
the candidate, answered from its record, and both are counted as a pair.
"""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from acp_spec.model import semver
from acp_spec.model.enums import Effect, Mode, SessionStatus
from acp_spec.model.ids import lineage_id, node_of, session_id, time_ms_of
from acp_spec.model.session import OpenSession, RolloutMark
from gateway.engine.backoff_policy import NAME as RECOVERY
from gateway.engine.catalog import Catalog
from gateway.engine.contract_checks import input_problem
from gateway.engine.definition import Workflow
from gateway.engine.events import AnyEvent, Opened, SessionEnded
from gateway.engine.measures import sample
from gateway.engine.pins import pins, swapped
from gateway.engine.policies import policies_of
from gateway.engine.recording import Recording, recording
from gateway.engine.states import SessionState
from gateway.engine.trajectories import trajectory
from gateway.governance import rollout as rules
from gateway.governance.backoff import Backoff
from gateway.governance.comparison import compare
from gateway.governance.rollout import Pair, Rollout, Session
from gateway.governance.rollout_judging import Arm, Sample, normal_reward
from gateway.governance.rollout_spec import BESIDE, Kind, Stage
from gateway.runtime.driver import Driver
from gateway.runtime.live import Live
from gateway.runtime.rollout_versions import PolicyVersions, text_of
from gateway.runtime.rollouts import Rollouts
from gateway.runtime.twins import TwinEnd, Twins, TwinWish
from gateway.runtime.workflows import Workflows
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.spans import session_span

_64_BITS: Final = 8
log = get_log("gateway.rollouts")


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with; rollouts may change it."""

    session_id: str
    workflow: Workflow | None
    pins: dict[str, str]
    marks: tuple[RolloutMark, ...] = ()
    recovery_params: str = ""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about a session that opens, beside its intent."""

    tenant: str
    request: OpenSession
    pins_of: Callable[[Workflow | None], dict[str, str]]


class RolloutTraffic:
    """Between openings, ends and rollouts. `attach` gives it its driver once there is one."""

    def __init__(
        self,
        rollouts: Rollouts,
        workflows: Workflows,
        *,
        policies: PolicyVersions,
        metrics: Metrics,
    ) -> None:
        self._rollouts = rollouts
        self._workflows = workflows
        self._policies = policies
        self._metrics = metrics
        self.backoff: Callable[[], Backoff] = Backoff
        """The recovery policy's defaults as they are now; the assembly puts the live ones here."""
        self._driver: Driver | None = None
        self._twins: Twins | None = None

    def attach(self, driver: Driver, twins: Twins) -> None:
        """Set once, before the first session opens."""
        self._driver, self._twins = driver, twins

    @property
    def is_idle(self) -> bool:
        """No rollout runs and no policy was rolled out: openings need not ask."""
        return not self._rollouts.active and not self._policies.params(RECOVERY)

    def serves(self, workflow: Workflow) -> bool:
        """Whether a rollout gives this version to callers now."""
        return any(
            (one.spec.subject.kind, one.spec.subject.name) == (Kind.WORKFLOW, workflow.name)
            and one.spec.subject.candidate == workflow.version
            and one.stage not in BESIDE
            for one in self._rollouts.active
        )

    # ---- at the opening --------------------------------------------------------------------------

    def intended(self, intent: Intent, opening: Opening, *, catalog: Catalog) -> Intent:
        """`placed`, but for a fault of ours, which must not cost a caller its session."""
        try:
            return self.placed(intent, opening, catalog=catalog)
        except Exception as fault:
            log.error("rollout_not_asked", cause=fault, session_id=intent.session_id)
            return intent

    def placed(self, intent: Intent, opening: Opening, *, catalog: Catalog) -> Intent:
        """The intent with what every running rollout says; workflows first, for they bring pins.

        A MANUAL session is driven by its client: it cannot be run twice, and says nothing of a
        version, so it takes no part.
        """
        intent = _but(intent, recovery_params=self._policies.params(RECOVERY))
        if opening.request.mode is not Mode.AUTOMATIC:
            return intent
        session = Session(
            session_id=intent.session_id,
            tenant=opening.tenant,
            session_key=opening.request.session_key,
        )
        for rollout in sorted(self._rollouts.active, key=lambda one: _LAYER[one.spec.subject.kind]):
            arm = self._arm(rollout, intent, session=session)
            if arm is None:
                continue
            tried = self._tried(rollout, intent, opening=opening, catalog=catalog)
            if tried is not None:
                intent = _placed(rollout, intent, tried=tried, arm=arm)
        return intent

    def _arm(self, rollout: Rollout, intent: Intent, *, session: Session) -> Arm | None:
        """Its place by the hash, which is asked first; nobody is given what is not there."""
        name = intent.workflow.name if intent.workflow else ""
        if rollout.spec.workflows and name not in rollout.spec.workflows:
            return None
        arm = rules.place(rollout, session)
        return arm if arm is not None and self._rollouts.is_there(rollout) else None

    def _tried(
        self, rollout: Rollout, intent: Intent, *, opening: Opening, catalog: Catalog
    ) -> Intent | None:
        """The session on the candidate; None when the rollout does not concern it."""
        subject = rollout.spec.subject
        match subject.kind:
            case Kind.COMPONENT:
                candidate = f"{subject.name}@{subject.candidate}"
                if candidate in intent.pins.values():  # FULL: it is the active version
                    return intent if rollout.stage is Stage.FULL else None
                to = (f"{subject.name}@{subject.baseline}", candidate)
                pins = swapped(intent.pins, intent.workflow, catalog=catalog, to=to)
                return None if pins == intent.pins else _but(intent, pins=pins)
            case Kind.WORKFLOW:
                return self._tried_workflow(rollout, intent, opening=opening)
            case Kind.POLICY:
                return _but(intent, recovery_params=text_of(subject.params))

    def _tried_workflow(
        self, rollout: Rollout, intent: Intent, *, opening: Opening
    ) -> Intent | None:
        subject, workflow = rollout.spec.subject, intent.workflow
        if workflow is None or workflow.name != subject.name:
            return None
        if workflow.version == subject.candidate:
            return intent if rollout.stage is Stage.FULL else None
        _, wanted = semver.split_name(opening.request.workflow)
        is_free = not wanted or semver.matches(subject.candidate, wanted)
        if workflow.version != subject.baseline or not is_free:
            return None
        candidate = self._workflows.exact(subject.name, subject.candidate)
        if input_problem(candidate, bytes(opening.request.input)) is not None:
            return None  # nobody is refused because of a rollout
        return _but(intent, workflow=candidate, pins=opening.pins_of(candidate))

    # ---- at the end ------------------------------------------------------------------------------

    def ended(self, state: SessionState) -> None:
        """Count a session that took part; those that their client gave up say nothing, nor those
        that the workflow's rules answered."""
        if state.status is SessionStatus.CANCELLED or state.opened.fallback is not None:
            return
        for mark in state.opened.rollouts:
            if mark.twin:
                self._offer(state, mark)
            elif state.deviations and mark.arm == Arm.CANDIDATE.value:
                self._rollouts.update(mark.rollout, rules.deviated)
            else:
                self._count(state, mark)

    def _count(self, state: SessionState, mark: RolloutMark) -> None:
        stage, arm = Stage(mark.stage), Arm(mark.arm)
        self._rollouts.update(
            mark.rollout,
            lambda rollout: rules.counted(rollout, stage, arm=arm, sample=_sample(rollout, state)),
        )

    def _offer(self, primary: SessionState, mark: RolloutMark) -> None:
        """Its twin begins once it has ended and nothing waits: it never stands in its way."""
        if self._twins is None:
            return
        session = primary.session_id

        def make() -> TwinWish | None:
            return self._wish(session, mark)

        def done(end: TwinEnd | None) -> None:
            self._twin_ended(session, mark, end=end)

        self._twins.offer(make, done)

    def _wish(self, primary_id: str, mark: RolloutMark) -> TwinWish | None:
        rollout, live = self._rollouts.running(mark.rollout), self._primary(primary_id)
        still = rollout is not None and rollout.running and rollout.stage.value == mark.stage
        if rollout is None or live is None or not still:
            return None
        return self._twin(rollout, live.state, mark=mark)

    def _primary(self, primary_id: str) -> Live | None:
        assert self._driver is not None, "attached before any session opens"
        return self._driver.find(primary_id)

    def _twin(
        self, rollout: Rollout, primary: SessionState, *, mark: RolloutMark
    ) -> TwinWish | None:
        assert self._driver is not None, "attached before any session opens"
        opened, catalog = primary.opened, self._driver.catalog()
        intent = Intent(
            session_id=mark.twin,
            workflow=primary.workflow,
            pins=opened.pins,
            recovery_params=opened.recovery_params,
        )
        name = opened.workflow.partition("@")[0]
        opening = Opening(
            tenant=opened.tenant,
            request=OpenSession(workflow=name, input=opened.input),
            pins_of=lambda workflow: _kept_pins(opened, workflow, catalog=catalog),
        )
        tried = self._tried(rollout, intent, opening=opening, catalog=catalog)
        if tried is None or tried.workflow is None:
            return None
        marks = (_but_mark(mark, arm=Arm.CANDIDATE),)
        twin = self.twin_opened(opened, _but(tried, marks=marks))
        record = recording(trajectory(primary))
        return TwinWish(
            opened=twin,
            workflow=tried.workflow,
            record=guarded(record, opened.pins, catalog=catalog),
        )

    def twin_opened(self, opened: Opened, intent: Intent) -> Opened:
        """The opening of a twin: the primary's own, on another version, under its own id, and in
        no trace of the caller's."""
        assert self._driver is not None, "attached before any session opens"
        workflow, new_id = intent.workflow, intent.session_id
        digest = workflow.source_digest if workflow else ""
        policies = policies_of(workflow, intent.recovery_params, defaults=self.backoff())
        basis = msgspec.json.encode([digest, intent.pins, opened.input_sha256, policies])
        return msgspec.structs.replace(
            opened,
            at_ms=self._driver.clock.now_ms(),
            session_id=new_id,
            lineage_id=lineage_id(new_id, basis),
            workflow=f"{workflow.name}@{workflow.version}" if workflow else "",
            workflow_digest=digest,
            session_key="",
            request_digest="",
            traceparent=session_span(new_id, None, ratio=0.0).header(),
            tracestate="",
            pins=intent.pins,
            policies=policies,
            recovery_params=intent.recovery_params,
            rollouts=intent.marks,
            twin_of=opened.session_id,
        )

    def _twin_ended(self, primary_id: str, mark: RolloutMark, *, end: TwinEnd | None) -> None:
        primary = self._primary(primary_id) if end is not None else None
        if end is None or primary is None:
            self._metrics.twin_ended("dropped")
            self._rollouts.update(mark.rollout, rules.dropped)
            return
        state, stage = primary.state, Stage(mark.stage)
        self._metrics.twin_ended("uncovered" if end.uncovered else "counted")
        self._rollouts.update(
            mark.rollout,
            lambda rollout: rules.paired(rollout, stage, pair=_pair(rollout, state, end=end)),
        )

    def leftover(self, state: SessionState) -> None:
        """A twin that a restart cut off."""
        for mark in state.opened.rollouts:
            self._metrics.twin_ended("dropped")
            self._rollouts.update(mark.rollout, rules.dropped)


class RolloutEnds:
    """Tells rollouts of the ends of the sessions that take part in one."""

    hears: Final = frozenset({SessionEnded})

    def __init__(self, traffic: RolloutTraffic) -> None:
        self._traffic = traffic

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        if not state.opened.rollouts:
            return
        try:
            self._traffic.ended(state)
        except Exception as fault:
            log.error("rollout_not_counted", cause=fault, session_id=state.session_id)


_LAYER: Final = {Kind.WORKFLOW: 0, Kind.COMPONENT: 1, Kind.POLICY: 2}
_but = msgspec.structs.replace


def _but_mark(mark: RolloutMark, *, arm: Arm) -> RolloutMark:
    return RolloutMark(rollout=mark.rollout, stage=mark.stage, arm=arm.value)


def _placed(rollout: Rollout, intent: Intent, *, tried: Intent, arm: Arm) -> Intent:
    """Beside: the session stays as it is and names its twin. Else: its arm decides."""
    beside = rollout.stage in BESIDE
    mark = RolloutMark(
        rollout=rollout.rollout_id,
        stage=rollout.stage.value,
        arm=Arm.BASELINE.value if beside else arm.value,
        twin=twin_id(intent.session_id, rollout.rollout_id) if beside else "",
    )
    served = tried if arm is Arm.CANDIDATE and not beside else intent
    return _but(served, marks=(*intent.marks, mark))


def twin_id(primary_id: str, rollout_id: str) -> str:
    """The id of a session's twin: known when the session opens, so that each can name the other."""
    digest = hashlib.blake2b(f"{primary_id}\0{rollout_id}".encode(), digest_size=_64_BITS).digest()
    number = int.from_bytes(digest, "big")
    return session_id(time_ms_of(primary_id), node_of(primary_id), random_64=number)


def _kept_pins(opened: Opened, workflow: Workflow | None, *, catalog: Catalog) -> dict[str, str]:
    """The pins of another workflow version; what the primary was pinned to stays."""
    fresh = pins(workflow, catalog, labels=opened.labels)
    return {key: opened.pins.get(key, pin) for key, pin in fresh.items()}


def guarded(record: Recording, pinned: dict[str, str], *, catalog: Catalog) -> Recording:
    """The record with every action that the primary's own versions call a WRITE: a candidate whose
    card calls it READ does not get it sent."""
    offers = [catalog.exact(pin) for pin in set(pinned.values())]
    writes = {
        action.name
        for offer in offers
        if offer is not None
        for action in offer.card.actions
        if action.effect is not Effect.READ
    }
    return _but(record, writes=record.writes | writes)


def _sample(rollout: Rollout, state: SessionState) -> Sample:
    rule = rollout.spec.reward
    found = sample(state, reward=rule.name if rule else "")
    return _but(found, reward=normal_reward(rollout.spec, found.reward))


def _pair(rollout: Rollout, primary: SessionState, *, end: TwinEnd) -> Pair:
    twin = end.state
    output = bytes(twin.output)
    for own, meant in (
        (twin.opened.lineage_id, primary.opened.lineage_id),
        (twin.session_id, primary.session_id),
    ):
        output = output.replace(own.encode(), meant.encode())
    found = compare(bytes(primary.output), output, ignore=rollout.spec.ignore)
    return Pair(
        primary=_sample(rollout, primary),
        twin=_sample(rollout, twin),
        ids=(primary.session_id, twin.session_id),
        uncovered=bool(end.uncovered),
        differs=not found.equal,
        fields=found.fields,
    )
