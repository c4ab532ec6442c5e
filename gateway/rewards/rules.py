"""Reward rules as they are held: what each looks at, when it applies, what it is worth.

Made by `rules_file` from a checked text, never by hand. Frozen; the digest names them exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from acp_spec.model.enums import FeedbackKind, Word
from acp_spec.model.reward_vector import RulesRef
from gateway.expressions.expression import Expression

ANY_ACTION: Final = "*"
HOUR_MS: Final = 3_600_000
VALIDATION_HOURS: Final = 24.0
"""Where nothing was fitted: a program that looks a day later sees a changed world half the time."""


class RuleKind(Word):
    """What a rule may do, which is also the channel it speaks in."""

    OUTCOME = "OUTCOME"  # quality: a judgement, null where something else prevented judging
    COST = "COST"  # operational: what an event cost, never null
    SHAPING = "SHAPING"  # shaped: a potential's differences, nothing over a whole session


class Part(Word):
    """Which component of the vector a rule speaks of."""

    STEP = "STEP"
    SESSION = "SESSION"
    LONG_TERM = "LONG_TERM"


class Each(Word):
    """The events that a rule looks at, one by one."""

    END = "END"
    CALL = "CALL"
    ATTEMPT = "ATTEMPT"
    LLM_CALL = "LLM_CALL"
    DECISION = "DECISION"
    FEEDBACK = "FEEDBACK"
    JUDGEMENT = "JUDGEMENT"
    COMMENT = "COMMENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`worth`: a judgement's value, what an event cost, or a potential, by kind."""

    name: str
    kind: RuleKind
    worth: Expression
    part: Part = Part.SESSION
    each: Each = Each.END
    when: Expression | None = None
    weight: float = 1.0
    workflows: frozenset[str] = frozenset()

    def holds_for(self, workflow: str) -> bool:
        """`workflow` as a trajectory names it, `name@version`."""
        return not self.workflows or workflow.partition("@")[0] in self.workflows


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRules:
    """One version. `half_life_hours`: kinds of feedback that fade; those not named never do."""

    ref: RulesRef
    rules: tuple[Rule, ...]
    description: str = ""
    penalties: Mapping[str, float] = field(default_factory=dict)
    half_life_hours: Mapping[FeedbackKind, float] = field(
        default_factory=lambda: {FeedbackKind.VALIDATION: VALIDATION_HOURS}
    )

    def penalty_of(self, action: str) -> float:
        """The factor of costs that this action's events have."""
        return self.penalties.get(action, self.penalties.get(ANY_ACTION, 1.0))

    def half_life_ms(self, kind: FeedbackKind) -> float | None:
        """None: it never fades."""
        hours = self.half_life_hours.get(kind)
        return None if hours is None else hours * HOUR_MS
