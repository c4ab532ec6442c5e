"""What rules make of a trajectory: a vector of rewards for a step, a session and the long term.

`quality` may be null, with `validity` and `reason`: something other than what is judged prevented
judging. `operational` never is. `shaped` stands beside it: the same with a potential's differences,
which sum to nothing over an ended session. No event is charged twice (`entries`).
"""

import msgspec

from acp_spec.model.enums import FeedbackKind, Word
from acp_spec.model.session import FeedbackTarget


class RaterSpread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far those who judged one thing in one way are apart; there are at least two of them."""

    kind: FeedbackKind
    target: FeedbackTarget = FeedbackTarget()
    raters: int
    mean: float
    lowest: float
    highest: float


class Validity(Word):
    """Whether a quality reward may be used."""

    VALID = "VALID"
    NOT_JUDGED = "NOT_JUDGED"  # the judging itself failed, or nobody judged
    NOT_REACHED = "NOT_REACHED"  # the session ended before it would have been judged


class Quality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A judgement, or why there is none: one without the other cannot be built.

    `weight`: how much judging is behind it, after the decay of what came late.
    """

    value: float | None = None
    validity: Validity = Validity.VALID
    reason: str = ""
    weight: float = 0.0

    def __post_init__(self) -> None:
        if (self.value is None) is (self.validity is Validity.VALID):
            raise ValueError("a quality is a value that is VALID, or null with its validity")
        if self.value is None and not self.reason:
            raise ValueError("a quality that is null says why in `reason`")


class RulesRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Which rules: `digest` is SHA-256 of their file."""

    name: str
    version: str
    digest: str


class StepReward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of one call. `operational` is raw; `shaped` is the same with the potential's difference."""

    call_id: str
    step: str
    loop: int = 0
    role: str = ""
    action: str = ""
    component: str = ""
    component_version: str = ""
    quality: Quality
    operational: float = 0.0
    shaped: float = 0.0


class PartReward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of the whole session, or of what it led to."""

    quality: Quality
    operational: float = 0.0


class Correction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`right` instead of `wrong`, as a comment says; `wrong` is empty where it does not say."""

    right: str
    wrong: str = ""


class CommentReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was understood of a comment, `by` rules or a reflector (`name@version`)."""

    feedback_id: str
    tags: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    validity: Validity = Validity.VALID
    reason: str = ""
    by: str = ""


class RewardEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event under one rule. Of equal `kind` no event has two, in whatever part."""

    rule: str
    kind: str
    part: str
    event: str
    value: float
    weight: float = 1.0


class RewardVector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`as_of`: what was said later is not in it. `problems`: rules that could not be applied."""

    rules: RulesRef
    as_of: str
    step: tuple[StepReward, ...] = ()
    session: PartReward
    long_term: PartReward
    entries: tuple[RewardEntry, ...] = ()
    problems: tuple[str, ...] = ()
