"""From a trajectory and rules to the reward vector: step, session, long term. Pure.

One event is charged once: rules are taken in the order of their file, and of all costs (and of all
outcomes) the first that applies to an event has it, whatever part it speaks of. A judgement that
something else prevented is null with the reason; sums and means use `fsum`, so that the order in
which feedback came changes nothing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from acp_spec.model.reward_vector import (
    PartReward,
    Quality,
    RewardEntry,
    RewardVector,
    StepReward,
    Validity,
)
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.expressions.expression import ExpressionError
from gateway.rewards import shaping
from gateway.rewards.decay import weight
from gateway.rewards.events import Event, Events, is_open, session_prevented
from gateway.rewards.given import not_judged
from gateway.rewards.judgeable import prevented
from gateway.rewards.rules import Each, Part, RewardRules, Rule, RuleKind
from gateway.rewards.worth import number

NOBODY: Final = "nobody judged it"
FADED: Final = "all that was said of it has faded"
SAID: Final = frozenset({Each.FEEDBACK, Each.JUDGEMENT, Each.COMMENT})
"""Events that are judgements by themselves."""
PROBLEMS_MAX: Final = 20
"""Of one trajectory: the rule is broken, and more of the same tells nothing new."""


def vector(trajectory: Trajectory, rules: RewardRules, *, as_of_ms: int) -> RewardVector:
    """The rewards by these rules of what was known at `as_of_ms`; the same inputs, the same."""
    scoring = _Scoring(trajectory, rules, Events(trajectory, as_of_ms=as_of_ms))
    for rule in rules.rules:
        if rule.holds_for(trajectory.workflow):
            scoring.take(rule)
    return RewardVector(
        rules=rules.ref,
        as_of=rfc3339(as_of_ms),
        step=tuple(scoring.step(row) for row in scoring.events.last.values()),
        session=scoring.part(Part.SESSION, session_prevented(trajectory)),
        long_term=scoring.part(Part.LONG_TERM, ""),
        entries=tuple(scoring.entries),
        problems=tuple(dict.fromkeys(scoring.problems))[:PROBLEMS_MAX],
    )


_Place = tuple[Part, str]
"""A part, and for a step its call."""


@dataclass(slots=True)
class _Scoring:
    trajectory: Trajectory
    rules: RewardRules
    events: Events
    entries: list[RewardEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _taken: dict[RuleKind, set[str]] = field(
        default_factory=lambda: {RuleKind.OUTCOME: set(), RuleKind.COST: set()}
    )
    _judged: dict[_Place, list[tuple[float, float]]] = field(default_factory=dict)
    _missing: dict[_Place, list[str]] = field(default_factory=dict)
    _costs: dict[_Place, list[float]] = field(default_factory=dict)
    _gains: dict[str, list[float]] = field(default_factory=dict)

    def take(self, rule: Rule) -> None:
        """Apply one rule to every event it looks at."""
        if rule.kind is RuleKind.SHAPING:
            self._shape(rule)
            return
        for event in self.events.of(rule.each):
            self._apply(rule, event)

    def _shape(self, rule: Rule) -> None:
        try:
            gains = shaping.differences(rule.worth, self.trajectory)
        except ExpressionError as problem:
            self._problem(rule, problem)
            return
        for call_id, gain in gains.items():
            self._gains.setdefault(call_id, []).append(gain)

    def _apply(self, rule: Rule, event: Event) -> None:
        if rule.part is Part.STEP and event.call_id not in self.events.last:
            return
        taken = self._taken[rule.kind]
        try:
            if event.key in taken or not _applies(rule, event):
                return
            taken.add(event.key)
            if rule.kind is RuleKind.COST:
                self._charge(rule, event)
            else:
                self._judge(rule, event)
        except ExpressionError as problem:
            self._problem(rule, problem)
            if rule.kind is RuleKind.OUTCOME:
                self._missing.setdefault(_place(rule, event), []).append(f"rule {rule.name} broke")

    def _charge(self, rule: Rule, event: Event) -> None:
        cost = number(rule.worth, event.scope)
        if cost < 0:
            raise ExpressionError(f"a cost is at least 0, this is {cost:g}", 1)
        value = -cost * self.rules.penalty_of(event.action) if cost else 0.0
        self._costs.setdefault(_place(rule, event), []).append(value)
        self._enter(rule, event, value=value, weighs=1.0)

    def _judge(self, rule: Rule, event: Event) -> None:
        place = _place(rule, event)
        why_not = event.prevented or self._prevented(rule)
        if why_not:
            self._missing.setdefault(place, []).append(why_not)
            return
        value = number(rule.worth, event.scope)
        weighs = rule.weight * self._decay(event)
        self._judged.setdefault(place, []).append((value, weighs))
        self._enter(rule, event, value=value, weighs=weighs)

    def _prevented(self, rule: Rule) -> str:
        """What the gateway saw of a session that something else ended is no judgement of it; what
        somebody said of it is."""
        if rule.part is Part.STEP or rule.each in SAID:
            return ""
        return session_prevented(self.trajectory)

    def _decay(self, event: Event) -> float:
        if event.row is None:
            return 1.0
        half_life_ms = self.rules.half_life_ms(event.row.feedback.kind)
        return weight(event.delay_ms, half_life_ms)

    def _enter(self, rule: Rule, event: Event, *, value: float, weighs: float) -> None:
        self.entries.append(
            RewardEntry(
                rule=rule.name,
                kind=rule.kind.value,
                part=rule.part.value,
                event=event.key,
                value=value,
                weight=weighs,
            )
        )

    def _problem(self, rule: Rule, problem: ExpressionError) -> None:
        self.problems.append(f"rule {rule.name}: {problem.message}")

    # ---- what came of it -----------------------------------------------------------------------

    def step(self, row: Attempt) -> StepReward:
        place = (Part.STEP, row.call_id)
        operational = math.fsum(self._costs.get(place, ()))
        gain = math.fsum(self._gains.get(row.call_id, ()))
        open_still = "the call is under way" if is_open(row) else ""
        return StepReward(
            call_id=row.call_id,
            step=row.step,
            loop=row.loop,
            role=row.role,
            action=row.action,
            component=row.component,
            component_version=row.component_version,
            quality=self._quality(
                place, open_still or prevented(row.error), reached=not open_still
            ),
            operational=operational,
            shaped=operational + gain,
        )

    def part(self, part: Part, why_not: str) -> PartReward:
        place = (part, "")
        failed = [f"{one.name}: {one.reason}" for one in not_judged(self.trajectory)]
        why_not = why_not or (failed[0] if failed and part is Part.SESSION else "")
        reached = self.trajectory.ended_at != "" or part is Part.LONG_TERM
        return PartReward(
            quality=self._quality(place, why_not, reached=reached),
            operational=math.fsum(self._costs.get(place, ())),
        )

    def _quality(self, place: _Place, why_not: str, *, reached: bool) -> Quality:
        judged = self._judged.get(place, [])
        total = math.fsum(weighs for _, weighs in judged)
        if total > 0:
            return Quality(value=_mean(judged, total), weight=total)
        missing = self._missing.get(place, [])
        reason = FADED if judged else (missing[0] if missing else why_not) or NOBODY
        validity = Validity.NOT_JUDGED if reached else Validity.NOT_REACHED
        return Quality(validity=validity, reason=reason)


def _mean(judged: Iterable[tuple[float, float]], total: float) -> float:
    return math.fsum(value * weighs for value, weighs in judged) / total


def _applies(rule: Rule, event: Event) -> bool:
    return rule.when is None or rule.when.evaluate_bool(event.scope)


def _place(rule: Rule, event: Event) -> _Place:
    return rule.part, event.call_id if rule.part is Part.STEP else ""
