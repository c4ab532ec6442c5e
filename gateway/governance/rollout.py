"""A rollout under way, as a value: places of sessions, samples in, time in, promotions out.

Every function takes a rollout and returns the next one; what changed is seen by comparing the two.
A stage's clock runs only while the gateway watches: `ticked` is told how long that was, so neither
a pause nor a restart nor a clock that jumps counts as time in which all went well.
"""

import enum
from typing import Final

import msgspec

from acp_spec.model.ids import unit_interval
from gateway.governance.comparison import counted as with_fields
from gateway.governance.rollout_judging import (
    EXAMPLES_MAX,
    Arm,
    ArmStats,
    Example,
    Outcome,
    Sample,
    StageStats,
    Verdict,
    arm_alpha,
    judged,
)
from gateway.governance.rollout_spec import (
    BESIDE,
    OnWorse,
    RolloutSpec,
    Stage,
    Sticky,
    named,
    next_stage,
)

replace = msgspec.structs.replace


class Status(enum.Enum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ROLLED_BACK = "ROLLED_BACK"
    COMPLETED = "COMPLETED"


OVER: Final = frozenset({Status.ROLLED_BACK, Status.COMPLETED})


class Order(enum.Enum):
    """What a person may demand."""

    PROMOTE = "PROMOTE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    ROLLBACK = "ROLLBACK"


ALLOWED: Final[dict[Order, frozenset[Status]]] = {
    Order.PROMOTE: frozenset({Status.RUNNING, Status.PAUSED}),
    Order.PAUSE: frozenset({Status.RUNNING}),
    Order.RESUME: frozenset({Status.PAUSED}),
    Order.ROLLBACK: frozenset({Status.RUNNING, Status.PAUSED}),
}


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """A stage that was left: how long it was watched, what was known, why and by whom (empty: by
    its rules)."""

    stage: Stage
    entered_at_ms: int
    left_at_ms: int
    observed_ms: float
    candidates: int
    baselines: int
    verdicts: tuple[Verdict, ...]
    fields: dict[str, int] = {}
    examples: tuple[Example, ...] = ()
    why: str = ""
    by: str = ""


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """`by` and `reason`: of the last change. `reference`: the baseline's figures that FULL is held
    against, when no session is served by the baseline any more."""

    rollout_id: str
    spec: RolloutSpec
    status: Status = Status.RUNNING
    stage: Stage = Stage.CANARY
    started_at_ms: int
    entered_at_ms: int
    changed_at_ms: int
    observed_ms: float = 0.0
    steady_ms: float = 0.0
    stats: StageStats = StageStats()
    verdicts: tuple[Verdict, ...] = ()
    reference: ArmStats = ArmStats()
    history: tuple[StageReport, ...] = ()
    by: str = ""
    reason: str = ""

    @property
    def over(self) -> bool:
        return self.status in OVER

    @property
    def running(self) -> bool:
        return self.status is Status.RUNNING


def begun(spec: RolloutSpec, *, by: str, at_ms: int) -> Rollout:
    """A rollout in its first stage."""
    return Rollout(
        rollout_id=named(spec),
        spec=spec,
        started_at_ms=at_ms,
        entered_at_ms=at_ms,
        changed_at_ms=at_ms,
        by=by,
        reason="started",
    )


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's place hangs on."""

    session_id: str
    tenant: str
    session_key: str = ""


def place(rollout: Rollout, session: Session) -> Arm | None:
    """The arm of a session that opens now; None: it takes no part.

    CANDIDATE in a stage of `BESIDE` means that a twin runs beside it. Places are nested: who takes
    part in a stage does so in all later ones. As many as get the candidate are counted as baseline.
    """
    if not rollout.running:
        return None
    at = unit_interval("rollout", rollout.rollout_id, *_hangs_on(rollout.spec.sticky, session))
    share = rollout.spec.rule(rollout.stage).share
    if at < share:
        return Arm.CANDIDATE
    return Arm.BASELINE if rollout.stage is Stage.CONTROLLED and at < 2 * share else None


def _hangs_on(sticky: Sticky, session: Session) -> tuple[str, ...]:
    match sticky:
        case Sticky.TENANT:
            return (session.tenant,)
        case Sticky.SESSION_KEY if session.session_key:
            return (session.tenant, session.session_key)
        case _:
            return ("", session.session_id)


# ---- samples in --------------------------------------------------------------------------------


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A session and its twin. `uncovered`: the twin wanted what the record does not have, so it
    says nothing but that; `fields`: where its output differs; `ids`: of both."""

    primary: Sample
    twin: Sample
    ids: tuple[str, str] = ("", "")
    uncovered: bool = False
    differs: bool = False
    fields: tuple[str, ...] = ()


def counted(rollout: Rollout, stage: Stage, *, arm: Arm, sample: Sample) -> Rollout:
    """One more session of an arm; those of an earlier stage come too late to count."""
    if rollout.over or rollout.stage is not stage:
        return rollout
    return replace(rollout, stats=_plus(rollout, arm=arm, sample=sample))


def _plus(rollout: Rollout, *, arm: Arm, sample: Sample) -> StageStats:
    stats, alpha = rollout.stats, arm_alpha(rollout.spec)
    if arm is Arm.CANDIDATE:
        return replace(stats, candidate=stats.candidate.plus(sample, alpha=alpha))
    return replace(stats, baseline=stats.baseline.plus(sample, alpha=alpha))


def paired(rollout: Rollout, stage: Stage, *, pair: Pair) -> Rollout:
    """One more session with its twin."""
    if rollout.over or rollout.stage is not stage:
        return rollout
    stats = replace(
        rollout.stats,
        uncovered=rollout.stats.uncovered.plus(pair.uncovered),
        examples=_examples(rollout.stats.examples, pair),
    )
    rollout = replace(rollout, stats=stats)
    if pair.uncovered:
        return rollout
    rollout = replace(rollout, stats=_plus(rollout, arm=Arm.BASELINE, sample=pair.primary))
    stats = _plus(rollout, arm=Arm.CANDIDATE, sample=pair.twin)
    if pair.primary.succeeded and pair.twin.succeeded:
        differs = stats.differs.plus(pair.differs)
        stats = replace(stats, differs=differs, fields=with_fields(stats.fields, pair.fields))
    return replace(rollout, stats=stats)


def _examples(known: tuple[Example, ...], pair: Pair) -> tuple[Example, ...]:
    """The first few of each kind of trouble."""
    what = _trouble(pair)
    if not what or sum(one.what == what for one in known) >= EXAMPLES_MAX:
        return known
    return (*known, Example(primary=pair.ids[0], twin=pair.ids[1], what=what))


def _trouble(pair: Pair) -> str:
    if pair.uncovered:
        return "UNCOVERED"
    if pair.primary.succeeded and not pair.twin.succeeded:
        return "FAILED"
    return "DIFFERS" if pair.differs and pair.twin.succeeded else ""


def dropped(rollout: Rollout) -> Rollout:
    """A twin for which there was no room, or that the gateway's end cut off."""
    return replace(rollout, stats=replace(rollout.stats, dropped=rollout.stats.dropped + 1))


def deviated(rollout: Rollout) -> Rollout:
    """A session of the candidate's arm that something else served: it says nothing of it."""
    return replace(rollout, stats=replace(rollout.stats, deviated=rollout.stats.deviated + 1))


# ---- time in -----------------------------------------------------------------------------------


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Wall time, how long was watched since the last look, and whether the candidate is there."""

    at_ms: int
    elapsed_ms: float
    available: bool = True


def ticked(rollout: Rollout, moment: Moment) -> Rollout:
    """Let the stage's clock go on, judge, and do what the rules say: at most one change."""
    if not rollout.running:
        return rollout
    verdicts = judged(rollout.spec, rollout.stage, stats=rollout.stats)
    rollout = replace(_clocked(rollout, moment, verdicts=verdicts), verdicts=verdicts)
    worse = [verdict.metric for verdict in verdicts if verdict.outcome is Outcome.WORSE]
    if worse:
        why = f"worse than the baseline in {', '.join(worse)}"
        if rollout.spec.on_worse is OnWorse.PAUSE:
            return _changed(rollout, Status.PAUSED, why=why, at_ms=moment.at_ms)
        return _left(rollout, Status.ROLLED_BACK, why=why, at_ms=moment.at_ms)
    if not moment.available:
        return rollout  # nothing is promoted to what is not there
    if not _waits_for(rollout):
        return _onward(rollout, why="its exit rules are met", at_ms=moment.at_ms)
    rule = rollout.spec.rule(rollout.stage)
    if rule.max_samples and rollout.stats.candidate.success.total >= rule.max_samples:
        why = f"undecided after {rollout.stats.candidate.success.total} candidates"
        return _changed(rollout, Status.PAUSED, why=why, at_ms=moment.at_ms)
    return rollout


def _clocked(rollout: Rollout, moment: Moment, *, verdicts: tuple[Verdict, ...]) -> Rollout:
    """Without the candidate nothing is watched; a figure beyond its margin is not steady."""
    if not moment.available:
        return replace(rollout, steady_ms=0.0)
    strained = any(verdict.strained for verdict in verdicts)
    steady_ms = 0.0 if strained else rollout.steady_ms + moment.elapsed_ms
    return replace(
        rollout, observed_ms=rollout.observed_ms + moment.elapsed_ms, steady_ms=steady_ms
    )


def waits_for(rollout: Rollout) -> tuple[str, ...]:
    """What the stage still waits for, for people; empty when it may be left, or is not running."""
    return _waits_for(rollout) if rollout.running else ()


def _waits_for(rollout: Rollout) -> tuple[str, ...]:
    spec, rule = rollout.spec, rollout.spec.rule(rollout.stage)
    found: list[str] = []
    samples = rollout.stats.candidate.success.total
    if samples < rule.min_samples:
        found.append(f"{rule.min_samples - samples} more candidate sessions")
    for what, have_ms, wanted_ms in (
        ("more to be watched", rollout.observed_ms, rule.min_ms),
        ("more in a row with all figures within their margins", rollout.steady_ms, rule.steady_ms),
    ):
        left_ms = spec.scaled_ms(wanted_ms) - have_ms
        if left_ms > 0:
            found.append(f"{left_ms / 1000:.0f} s {what}")
    strained = [verdict.metric for verdict in rollout.verdicts if verdict.strained]
    found += [f"{metric} back within its margin" for metric in strained]
    if rule.prove:
        proven = Outcome.FINE
        open_ones = [v.metric for v in rollout.verdicts if v.prove and v.outcome is not proven]
        found += [f"proof that {metric} is not worse" for metric in open_ones]
    return tuple(found)


# ---- orders of people --------------------------------------------------------------------------


def ordered(rollout: Rollout, order: Order, *, by: str, reason: str, at_ms: int) -> Rollout | str:
    """What a person demands; or why it cannot be."""
    if rollout.status not in ALLOWED[order]:
        return f"the rollout is {rollout.status.value}: {order.value.lower()} is not possible"
    match order:
        case Order.PROMOTE:
            why = reason or "promoted by hand"
            return replace(_onward(rollout, why=why, at_ms=at_ms, by=by), by=by)
        case Order.PAUSE:
            why = reason or "paused by hand"
            return _changed(rollout, Status.PAUSED, why=why, at_ms=at_ms, by=by)
        case Order.RESUME:
            return _resumed(rollout, why=reason or "resumed by hand", at_ms=at_ms, by=by)
        case Order.ROLLBACK:
            why = reason or "rolled back by hand"
            return _left(rollout, Status.ROLLED_BACK, why=why, at_ms=at_ms, by=by)


def stopped(rollout: Rollout, *, why: str, at_ms: int) -> Rollout:
    """Paused because what it rests on has changed."""
    return _changed(rollout, Status.PAUSED, why=why, at_ms=at_ms) if rollout.running else rollout


def _resumed(rollout: Rollout, *, why: str, at_ms: int, by: str) -> Rollout:
    """What the tests stopped begins its stage anew: the same samples would stop it again."""
    if not rollout.by:
        rollout = _entered(rollout, rollout.stage, at_ms=at_ms)
    return _changed(rollout, Status.RUNNING, why=why, at_ms=at_ms, by=by)


def _onward(rollout: Rollout, *, why: str, at_ms: int, by: str = "") -> Rollout:
    following = next_stage(rollout.stage)
    if following is None:
        return _left(rollout, Status.COMPLETED, why=why, at_ms=at_ms, by=by)
    left = _left(rollout, Status.RUNNING, why=why, at_ms=at_ms, by=by)
    return _entered(left, following, at_ms=at_ms)


def _entered(rollout: Rollout, stage: Stage, *, at_ms: int) -> Rollout:
    """Each stage is judged by its own sessions alone; FULL has no others to be held against."""
    reference = rollout.stats.baseline if stage is Stage.FULL else ArmStats()
    if stage is rollout.stage:
        reference = rollout.reference
    return replace(
        rollout,
        stage=stage,
        entered_at_ms=at_ms,
        observed_ms=0.0,
        steady_ms=0.0,
        stats=StageStats(baseline=reference),
        reference=reference,
        verdicts=(),
    )


def _left(rollout: Rollout, status: Status, *, why: str, at_ms: int, by: str = "") -> Rollout:
    report = StageReport(
        stage=rollout.stage,
        entered_at_ms=rollout.entered_at_ms,
        left_at_ms=at_ms,
        observed_ms=rollout.observed_ms,
        candidates=rollout.stats.candidate.success.total,
        baselines=rollout.stats.baseline.success.total,
        verdicts=rollout.verdicts,
        fields=rollout.stats.fields,
        examples=rollout.stats.examples,
        why=why,
        by=by,
    )
    kept = replace(rollout, history=(*rollout.history, report))
    return _changed(kept, status, why=why, at_ms=at_ms, by=by)


def _changed(rollout: Rollout, status: Status, *, why: str, at_ms: int, by: str = "") -> Rollout:
    return replace(rollout, status=status, reason=why, by=by, changed_at_ms=at_ms)


def runs_beside(rollout: Rollout) -> bool:
    """Whether callers are still served by the baseline alone."""
    return rollout.stage in BESIDE
