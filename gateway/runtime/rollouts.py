"""The rollouts of one gateway: kept on disk, moved on by their rules, ordered by people, audited.

`governance/rollout` decides; this keeps what it decided in the batch of the event that caused it,
makes versions active where a stage says so, and tells the audit log of every change. Rollouts are
the gateway's own, like the components and workflows they are about: no tenant has any.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.times import rfc3339
from gateway.board.audit import AuditLog
from gateway.governance import rollout as rules
from gateway.governance.rollout import Moment, Order, Rollout, StageReport, Status
from gateway.governance.rollout_judging import Example, Verdict
from gateway.governance.rollout_spec import RolloutSpec, Stage, Subject, spec_problem
from gateway.runtime.clock import Clock
from gateway.runtime.principal import Principal
from gateway.runtime.rollout_versions import Versions
from gateway.stores.durable import Durable
from gateway.stores.errors import StoreError
from gateway.stores.ports import Store, Table
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics

TICK_S: Final = 0.25
WATCHED_MS_MAX: Final = 2_000.0
"""A look that comes later than this found a gateway that had been stopped (a paused container, a
debugger): nobody watched for the rest of that time."""
"""How often rollouts are judged: a proven harm goes on for no longer than that."""
KEEP_S: Final = 1.0
"""How often a stage's clock goes to disk: a kill takes back no more of it."""
PUT_EVERY_MS: Final = 20.0
"""A row has some kilobytes: under heavy traffic samples share one. A kill may take a look's worth
of them back, which are missing by chance; none is ever counted twice."""
RUNNING_MAX: Final = 16
"""Each costs a hash per opening and a judgement per tick."""
FINISHED_MAX: Final = 500
"""Finished rollouts that are kept for people to read; the oldest go first."""
DAY_MS: Final = 24 * 60 * 60 * 1000
ITSELF: Final = "the rollout's rules"

REASON_CHARACTERS_MAX: Final = 1_000
"""A sentence for whoever reads the audit log, no document."""

_ROW: Final = b"rollout\0"
log = get_log("gateway.rollouts")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout on disk. `tenant`: of who started it, for the audit log."""

    rollout: Rollout
    tenant: str = ""


class RolloutView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rollout for people and programs. `waits_for`: what its stage still needs, in words."""

    rollout_id: str
    subject: Subject
    status: Status
    stage: Stage
    share: float
    reason: str
    by: str = ""
    started_at: str
    stage_entered_at: str
    changed_at: str
    observed_ms: int
    steady_ms: int
    candidates: int
    baselines: int
    uncovered: int = 0
    dropped: int = 0
    deviated: int = 0
    fields: dict[str, int] = {}
    examples: tuple[Example, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    waits_for: tuple[str, ...] = ()
    history: tuple[StageReport, ...] = ()
    spec: RolloutSpec


class RolloutPage(msgspec.Struct, frozen=True, kw_only=True):
    """Every rollout that is kept, the newest last."""

    rollouts: tuple[RolloutView, ...] = ()


class OrderRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Why a person orders it; shown with the rollout and kept in the audit log."""

    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARACTERS_MAX)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutParts:
    """What rollouts stand on."""

    store: Store
    durable: Durable
    audit: AuditLog
    clock: Clock
    metrics: Metrics


class Rollouts:
    """Keeps rollouts and moves them on. All methods are called on the event loop's thread."""

    def __init__(self, parts: RolloutParts, versions: Versions) -> None:
        self._durable = parts.durable
        self._versions = versions
        self._audit = parts.audit
        self._clock = clock = parts.clock
        self._metrics = parts.metrics
        self._kept: dict[str, Kept] = {}
        self._put_ms: dict[str, float] = {}
        self._unkept: set[str] = set()
        self._wake = asyncio.Event()
        self._looked_ms = clock.monotonic_ms()
        self._kept_ms = self._looked_ms
        self.active: tuple[Rollout, ...] = ()
        """Those that run, in the order in which they began, for openings: their samples are of the
        time when they last moved."""
        for key, value in parts.store.scan(Table.GOVERNANCE, _ROW):
            self._load(key.removeprefix(_ROW).decode(), value)
        self._recount()

    # ---- for people ------------------------------------------------------------------------------

    async def start(self, spec: RolloutSpec, principal: Principal) -> RolloutView:
        """Begin a rollout; durable on return. Raises INVALID_REQUEST, NOT_FOUND, ALREADY_EXISTS,
        or FAILED_PRECONDITION when another one moves the same thing."""
        problem = spec_problem(spec)
        if problem is not None:
            raise invalid_request(problem)
        spec = msgspec.structs.replace(spec, subject=self._versions.based(spec.subject))
        rollout = rules.begun(spec, by=principal.subject, at_ms=self._clock.now_ms())
        self._refuse_second(rollout)
        self._forget_oldest()
        self._keep(Kept(rollout=rollout, tenant=principal.tenant))
        self._tell("rollout.start", rollout, actor=principal.subject, tenant=principal.tenant)
        self._wake.set()
        await self._durable.synced()
        return self.get(rollout.rollout_id)

    def count(self, status: Status) -> int:
        """How many rollouts stand so."""
        return sum(one.rollout.status is status for one in self._kept.values())

    def taken_back(self) -> int:
        """How many their own rules took back within a day: news that somebody should hear."""
        since_ms = self._clock.now_ms() - DAY_MS
        return sum(
            one.rollout.status is Status.ROLLED_BACK
            and not one.rollout.by
            and one.rollout.changed_at_ms >= since_ms
            for one in self._kept.values()
        )

    def list(self) -> RolloutPage:
        """Every rollout that is kept."""
        kept = sorted(self._kept.values(), key=lambda one: one.rollout.started_at_ms)
        return RolloutPage(rollouts=tuple(_view(one.rollout) for one in kept))

    def get(self, rollout_id: str) -> RolloutView:
        """One rollout; raises NOT_FOUND."""
        return _view(self._find(rollout_id).rollout)

    async def order(
        self, rollout_id: str, order: Order, *, reason: str, principal: Principal
    ) -> RolloutView:
        """What a person demands; raises FAILED_PRECONDITION where it is not possible."""
        before = self._find(rollout_id).rollout
        at_ms = self._clock.now_ms()
        found = rules.ordered(before, order, by=principal.subject, reason=reason, at_ms=at_ms)
        if isinstance(found, str):
            raise _not_now(found)
        if order is Order.PROMOTE and not self._versions.of(before.spec.subject).available(
            before.spec.subject
        ):
            raise _not_now("the candidate is not there: nothing is promoted to what cannot serve")
        await self._changed(before, found, actor=principal.subject, tenant=principal.tenant)
        return self.get(rollout_id)

    # ---- for sessions ----------------------------------------------------------------------------

    def running(self, rollout_id: str) -> Rollout | None:
        """The rollout, unless it is over."""
        kept = self._kept.get(rollout_id)
        return None if kept is None or kept.rollout.over else kept.rollout

    def is_there(self, rollout: Rollout) -> bool:
        """Whether the candidate could serve a session now."""
        return self._versions.of(rollout.spec.subject).available(rollout.spec.subject)

    def update(self, rollout_id: str, change: Callable[[Rollout], Rollout]) -> None:
        """Put a sample in: on disk with the end of the session that it comes from, unless another
        one went there just now; then with the next, or the next look."""
        kept = self._kept.get(rollout_id)
        if kept is None or kept.rollout.over:
            return
        rollout = change(kept.rollout)
        if rollout is not kept.rollout:
            now_ms = self._clock.monotonic_ms()
            is_due = now_ms - self._put_ms.get(rollout_id, 0.0) >= PUT_EVERY_MS
            if not is_due:
                self._unkept.add(rollout_id)
            self._keep(msgspec.structs.replace(kept, rollout=rollout), on_disk=is_due)

    # ---- time ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Let time pass for every rollout until cancelled; sleeps while there is none."""
        while True:
            if not self.active:
                self._wake.clear()
                await self._wake.wait()
                self._looked_ms = self._clock.monotonic_ms()
            await asyncio.sleep(TICK_S)
            try:
                await self.tick()
            except StoreError:
                pass  # the gateway is over; readiness tells of it
            except Exception as fault:
                self._metrics.loop_failed("rollouts")
                log.error("rollouts_not_judged", cause=fault)

    async def tick(self) -> None:
        """Judge every running rollout once."""
        now_ms = self._clock.monotonic_ms()
        elapsed_ms, self._looked_ms = min(now_ms - self._looked_ms, WATCHED_MS_MAX), now_ms
        is_time_to_keep = now_ms - self._kept_ms >= KEEP_S * 1000
        if is_time_to_keep:
            self._kept_ms = now_ms
        unkept = frozenset(self._unkept)
        for rollout_id in [rollout.rollout_id for rollout in self.active]:
            kept = self._kept[rollout_id]  # read anew: the one before may have waited for the disk
            after = self._ticked(kept.rollout, elapsed_ms)
            if _moved(kept.rollout, after):
                await self._by_its_rules(kept.rollout, after, tenant=kept.tenant)
            else:
                kept = msgspec.structs.replace(kept, rollout=after)
                self._keep(kept, on_disk=is_time_to_keep or rollout_id in unkept)

    def _ticked(self, rollout: Rollout, elapsed_ms: float) -> Rollout:
        subject, at_ms = rollout.spec.subject, self._clock.now_ms()
        versioned = self._versions.of(subject)
        meant = subject.candidate if rollout.stage is Stage.FULL else subject.baseline
        active = versioned.active(subject.name)
        if active not in ("", meant):
            why = f"the active version is {active} now, not {meant}: somebody else moved it"
            return rules.stopped(rollout, why=why, at_ms=at_ms)
        moment = Moment(at_ms=at_ms, elapsed_ms=elapsed_ms, available=versioned.available(subject))
        return rules.ticked(rollout, moment)

    # ---- inside ----------------------------------------------------------------------------------

    async def _changed(self, before: Rollout, after: Rollout, *, actor: str, tenant: str) -> None:
        """Keep, tell, and make a version active: all in one batch, then wait for the disk.

        Raises what the activation raises, with everything as it was; so does the first stage that
        serves callers, for what the board refuses to all of them it refuses to some.
        """
        if after.stage is Stage.CONTROLLED and before.stage is not Stage.CONTROLLED:
            self._versions.of(after.spec.subject).permitted(after.spec.subject)
        kept = self._kept[after.rollout_id]
        self._keep(msgspec.structs.replace(kept, rollout=after))
        version, subject = _to_activate(before, after), after.spec.subject
        try:
            if version:
                await self._versions.of(subject).activate(subject, version)
        except AcpFailure:
            self._keep(kept)
            raise
        self._tell(_word(before, after), after, actor=actor, tenant=tenant)
        self._metrics.rollout_changed(after.stage.value, after.status.value)
        await self._durable.synced()

    async def _by_its_rules(self, before: Rollout, after: Rollout, *, tenant: str) -> None:
        """A change nobody ordered; what is refused (by the board, say) waits for a person."""
        try:
            await self._changed(before, after, actor=ITSELF, tenant=tenant)
        except AcpFailure as failure:
            why = f"it would be {after.stage.value}, but: {failure.error.message}"
            paused = rules.stopped(before, why=why, at_ms=self._clock.now_ms())
            await self._changed(before, paused, actor=ITSELF, tenant=tenant)

    def _keep(self, kept: Kept, *, on_disk: bool = True) -> None:
        rollout_id = kept.rollout.rollout_id
        before, self._kept[rollout_id] = self._kept.get(rollout_id), kept
        if on_disk:
            self._put_ms[rollout_id] = self._clock.monotonic_ms()
            self._unkept.discard(rollout_id)
            key = _ROW + rollout_id.encode()
            self._durable.put(Table.GOVERNANCE, key, msgspec.json.encode(kept))
        if before is None or _moved(before.rollout, kept.rollout):
            self._recount()

    def _recount(self) -> None:
        running = [one.rollout for one in self._kept.values() if one.rollout.running]
        self.active = tuple(sorted(running, key=lambda rollout: rollout.started_at_ms))

    def _tell(self, action: str, rollout: Rollout, *, actor: str, tenant: str) -> None:
        last = rollout.history[-1] if rollout.history else None
        details = {
            "stage": rollout.stage.value,
            "status": rollout.status.value,
            "reason": rollout.reason,
            "subject": rollout.spec.subject,
            "left": last.stage.value if last else "",
            "verdicts": [] if last is None else [_short(verdict) for verdict in last.verdicts],
        }
        subject = f"rollout:{rollout.rollout_id}"
        self._audit.record(action, subject, actor=actor, tenant=tenant, details=details)
        log.info(
            "rollout_changed",
            rollout=rollout.rollout_id,
            stage=rollout.stage.value,
            status=rollout.status.value,
            reason=rollout.reason,
            by=actor,
        )

    def _refuse_second(self, rollout: Rollout) -> None:
        if rollout.rollout_id in self._kept:
            message = f"there is a rollout {rollout.rollout_id!r} already: give `rollout` a name"
            raise AcpFailure(error(Reason.ALREADY_EXISTS, message))
        under_way = [one.rollout for one in self._kept.values() if not one.rollout.over]
        subject = rollout.spec.subject
        for other in under_way:
            if (other.spec.subject.kind, other.spec.subject.name) == (subject.kind, subject.name):
                raise _not_now(f"{other.rollout_id!r} moves {subject.name!r} already: end it first")
        if len(under_way) >= RUNNING_MAX:
            raise _not_now(f"{RUNNING_MAX} rollouts are under way: end one first")

    def _forget_oldest(self) -> None:
        finished = [one.rollout for one in self._kept.values() if one.rollout.over]
        finished.sort(key=lambda rollout: rollout.changed_at_ms)
        for rollout in finished[: max(0, len(finished) - FINISHED_MAX + 1)]:
            del self._kept[rollout.rollout_id]
            self._put_ms.pop(rollout.rollout_id, None)
            self._durable.delete(Table.GOVERNANCE, _ROW + rollout.rollout_id.encode())

    def _load(self, rollout_id: str, row: bytes) -> None:
        """One that cannot be read is left where it is: a gateway starts all the same."""
        try:
            self._kept[rollout_id] = msgspec.json.decode(row, type=Kept)
        except msgspec.DecodeError as problem:
            log.error("rollout_unreadable", cause=problem, rollout=rollout_id)

    def _find(self, rollout_id: str) -> Kept:
        kept = self._kept.get(rollout_id)
        if kept is None:
            message = f"there is no rollout {rollout_id!r}: list them with GET /v1/rollouts"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        return kept


def _moved(before: Rollout, after: Rollout) -> bool:
    return (before.status, before.stage) != (after.status, after.stage)


def _word(before: Rollout, after: Rollout) -> str:
    """The audit log's name of a change."""
    match after.status:
        case Status.ROLLED_BACK:
            return "rollout.rollback"
        case Status.COMPLETED:
            return "rollout.complete"
        case Status.PAUSED:
            return "rollout.pause"
        case Status.RUNNING:
            return "rollout.promote" if after.stage is not before.stage else "rollout.resume"


def _to_activate(before: Rollout, after: Rollout) -> str:
    """The version that this change makes the active one; empty where it makes none."""
    if after.stage is Stage.FULL and before.stage is not Stage.FULL:
        return after.spec.subject.candidate
    taken_back = after.status is Status.ROLLED_BACK and after.stage is Stage.FULL
    return after.spec.subject.baseline if taken_back else ""


def _short(verdict: Verdict) -> dict[str, object]:
    return {
        "metric": verdict.metric,
        "outcome": verdict.outcome.value,
        "baseline": verdict.baseline,
        "candidate": verdict.candidate,
        "samples": [verdict.baseline_samples, verdict.candidate_samples],
    }


def _view(rollout: Rollout) -> RolloutView:
    stats = rollout.stats
    return RolloutView(
        rollout_id=rollout.rollout_id,
        subject=rollout.spec.subject,
        status=rollout.status,
        stage=rollout.stage,
        share=rollout.spec.rule(rollout.stage).share,
        reason=rollout.reason,
        by=rollout.by,
        started_at=rfc3339(rollout.started_at_ms),
        stage_entered_at=rfc3339(rollout.entered_at_ms),
        changed_at=rfc3339(rollout.changed_at_ms),
        observed_ms=int(rollout.observed_ms),
        steady_ms=int(rollout.steady_ms),
        candidates=stats.candidate.success.total,
        baselines=stats.baseline.success.total,
        uncovered=stats.uncovered.hits,
        dropped=stats.dropped,
        deviated=stats.deviated,
        fields=stats.fields,
        examples=stats.examples,
        verdicts=rollout.verdicts,
        waits_for=rules.waits_for(rollout),
        history=rollout.history,
        spec=rollout.spec,
    )


def _not_now(message: str) -> AcpFailure:
    """The request is well made; it is the state of things that forbids it."""
    return AcpFailure(
        AcpError(
            code=Code.FAILED_PRECONDITION,
            reason="ROLLOUT_STATE",
            message=message,
            boundary=Boundary.CLIENT,
        )
    )
