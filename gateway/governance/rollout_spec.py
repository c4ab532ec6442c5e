"""The declaration of a rollout: what is tried against what, on whom, and what lets it go on.

A file an operator writes (YAML or JSON); everything but the subject has a default with a reason.
Checked once when the rollout starts; a rollout under way never changes its own rules.
"""

import enum
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from acp_spec.model import semver
from acp_spec.model.bounds import Count, NonEmpty

HOUR_MS: Final = 60 * 60 * 1000
NAME_CHARACTERS_MAX: Final = 200
VERSION_CHARACTERS_MAX: Final = 128
NAMED_MAX: Final = 100
"""Workflows, or fields, that a declaration may list: each is compared with every session."""
ALPHA_MIN: Final = 1e-9
"""Less is no promise that anybody could check, and no number that the tests could divide."""
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
FIGURE_MAX: Final = 1e12
"""Of margins and rewards: a limit made from it must stay a number, for JSON knows no infinity."""
Scale = Annotated[float, msgspec.Meta(gt=0.0, le=1_000.0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0, le=FIGURE_MAX)]
Figure = Annotated[float, msgspec.Meta(ge=-FIGURE_MAX, le=FIGURE_MAX)]


class Kind(enum.Enum):
    """What changes its version. A policy's version is its parameters."""

    COMPONENT = "COMPONENT"
    WORKFLOW = "WORKFLOW"
    POLICY = "POLICY"


class Stage(enum.Enum):
    """In this order. CANARY and SHADOW run the candidate beside the session, as its twin."""

    CANARY = "CANARY"
    SHADOW = "SHADOW"
    CONTROLLED = "CONTROLLED"
    FULL = "FULL"


ORDER: Final = tuple(Stage)
BESIDE: Final = frozenset({Stage.CANARY, Stage.SHADOW})
"""Stages in which callers are served by the baseline alone."""


class Sticky(enum.Enum):
    """What a session's place in the rollout hangs on."""

    SESSION = "SESSION"
    SESSION_KEY = "SESSION_KEY"
    TENANT = "TENANT"


class OnWorse(enum.Enum):
    """What a proven harm does: back to the baseline, or stop and let a person look."""

    ROLLBACK = "ROLLBACK"
    PAUSE = "PAUSE"


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`baseline` empty: the version that is active when the rollout starts. `params`: of a policy.

    A policy's `name` is that of the recovery policy (`backoff`), its version any name for a set of
    parameters. `baseline_params` are filled in when the rollout starts."""

    kind: Kind = Kind.COMPONENT
    name: NonEmpty
    candidate: NonEmpty
    baseline: str = ""
    params: dict[str, int] = {}
    baseline_params: dict[str, int] = {}


class StageRule(msgspec.Struct, frozen=True, kw_only=True):
    """`share` of the sessions takes part. Left for the next stage once `min_samples` candidates
    were counted, `min_ms` were observed, the last `steady_ms` of them with every figure within its
    margin, and - with `prove` - what a metric says is to be proven is proven.

    `max_samples`: with so many and still no proof a person has to decide (0: no bound)."""

    share: Share
    min_samples: Count = 0
    min_ms: Count = 0
    steady_ms: Count = 0
    max_samples: Count = 0
    prove: bool = True


class RateRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of both arms: the candidate may be worse by `margin` (absolute)."""

    margin: Share = 0.05
    prove: bool = False


class LatencyRule(msgspec.Struct, frozen=True, kw_only=True):
    """A quantile of both arms: the candidate's may be `margin` (relative) and `slack_ms` longer."""

    quantile: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)] = 0.95
    margin: NotNegative = 0.25
    slack_ms: NotNegative = 10.0
    prove: bool = False


class RewardRule(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the reflector's rewards of this `name` (empty: of all), clipped to low..high;
    `margin` is absolute, in the reward's own unit."""

    name: str = ""
    low: Figure = 0.0
    high: Figure = 1.0
    margin: NotNegative = 0.05
    prove: bool = False


class ShareRule(msgspec.Struct, frozen=True, kw_only=True):
    """At most this share of the twins: of one arm, judged against a figure."""

    most: Share
    prove: bool = False


class RolloutSpec(msgspec.Struct, frozen=True, kw_only=True):
    """See docs/rollouts.md. A metric set to null is not judged.

    `alpha`: the chance that a rollout of an equal version is ever stopped by its tests.
    `time_scale`: all durations times this, so that a rehearsal takes minutes.
    `workflows`: only sessions of these take part (empty: of all). `ignore`: fields of the output
    that may differ."""

    subject: Subject
    rollout: str = ""
    sticky: Sticky = Sticky.SESSION
    workflows: tuple[str, ...] = ()
    alpha: Annotated[float, msgspec.Meta(ge=ALPHA_MIN, lt=0.5)] = 0.05
    time_scale: Scale = 1.0
    on_worse: OnWorse = OnWorse.ROLLBACK
    canary: StageRule = StageRule(share=0.01, min_samples=100, min_ms=HOUR_MS, prove=False)
    shadow: StageRule = StageRule(share=0.05, min_samples=300, min_ms=6 * HOUR_MS)
    controlled: StageRule = StageRule(
        share=0.20, min_samples=300, min_ms=48 * HOUR_MS, steady_ms=48 * HOUR_MS
    )
    full: StageRule = StageRule(share=1.0, min_ms=HOUR_MS, prove=False)
    success: RateRule | None = RateRule(prove=True)
    fallback: RateRule | None = RateRule()
    latency: LatencyRule | None = LatencyRule()
    reward: RewardRule | None = RewardRule()
    output: ShareRule | None = ShareRule(most=0.05)
    uncovered: ShareRule | None = ShareRule(most=0.5)
    ignore: tuple[str, ...] = ()

    def rule(self, stage: Stage) -> StageRule:
        """The rule of a stage."""
        rules = (self.canary, self.shadow, self.controlled, self.full)
        return rules[ORDER.index(stage)]

    def scaled_ms(self, ms: int) -> float:
        """A declared duration as it runs."""
        return ms * self.time_scale


def next_stage(stage: Stage) -> Stage | None:
    """The stage behind this one; None behind the last."""
    place = ORDER.index(stage) + 1
    return ORDER[place] if place < len(ORDER) else None


def named(spec: RolloutSpec) -> str:
    """The rollout's name: its own, or said by what it changes."""
    subject = spec.subject
    return spec.rollout or f"{subject.kind.value.lower()}-{subject.name}-{subject.candidate}"


def _name_problem(spec: RolloutSpec) -> str | None:
    name = named(spec)
    if len(name) > NAME_CHARACTERS_MAX or not name.isprintable() or "/" in name:
        return f"rollout: at most {NAME_CHARACTERS_MAX} printable characters, without a slash"
    return None


def _version_problem(spec: RolloutSpec) -> str | None:
    subject = spec.subject
    if len(subject.candidate) > VERSION_CHARACTERS_MAX:
        return f"subject.candidate: at most {VERSION_CHARACTERS_MAX} characters"
    if subject.kind is Kind.POLICY:
        return None if subject.params else "subject.params: the candidate policy's parameters"
    if subject.params or subject.baseline_params:
        return "subject.params: only a policy has parameters"
    for field, version in (("candidate", subject.candidate), ("baseline", subject.baseline)):
        try:
            if version:
                semver.parse(version)
        except semver.VersionError as problem:
            return f"subject.{field}: {problem}"
    return None


def _baseline_problem(spec: RolloutSpec) -> str | None:
    subject = spec.subject
    same = subject.candidate == subject.baseline
    return "subject: candidate and baseline are the same version" if same else None


def _share_problem(spec: RolloutSpec) -> str | None:
    """Who is in a stage stays in the next ones, and CONTROLLED needs as many to compare with."""
    shares = [spec.rule(stage).share for stage in ORDER]
    if shares != sorted(shares):
        return "canary, shadow, controlled, full: each stage's share must be at least the last's"
    if spec.controlled.share > 0.5:
        return "controlled.share: at most 0.5, so that as many sessions stay to compare with"
    if any(share <= 0.0 for share in shares):
        return "share: a stage without sessions would never end"
    return None if spec.full.share == 1.0 else "full.share: the last stage is everybody, 1.0"


def _reward_problem(spec: RolloutSpec) -> str | None:
    reward = spec.reward
    if reward is None:
        return None
    return "reward: low must be under high" if reward.low >= reward.high else None


def _list_problem(spec: RolloutSpec) -> str | None:
    for field, listed in (("workflows", spec.workflows), ("ignore", spec.ignore)):
        if len(listed) > NAMED_MAX:
            return f"{field}: at most {NAMED_MAX} entries"
    return None


CHECKS: Final[tuple[Callable[[RolloutSpec], str | None], ...]] = (
    _name_problem,
    _version_problem,
    _baseline_problem,
    _share_problem,
    _reward_problem,
    _list_problem,
)


def spec_problem(spec: RolloutSpec) -> str | None:
    """What is wrong with a declaration, for its author; None when nothing is."""
    return next((said for check in CHECKS if (said := check(spec)) is not None), None)
