"""Which changes need an approved proposal, who may approve, and which figures must stand behind it.

Off by default: a kind of change that is not named here happens at once. Kinds and evidence are
those of `gateway.board`; a misspelt one is an error at start.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gateway.config.section import Section

PositiveDays = Annotated[float, Field(gt=0, le=3_650)]
BOUND_PATTERN = r"^[A-Za-z0-9_.-]{1,200} (>=|<=|==) -?\d{1,15}(\.\d{1,9})?$"
BoundText = Annotated[str, Field(pattern=BOUND_PATTERN)]


class GovernedChange(StrEnum):
    """The kinds of change that a rule can govern."""

    MAJOR_VERSION = "MAJOR_VERSION"
    NEW_COMPONENT = "NEW_COMPONENT"
    SLA_CHANGE = "SLA_CHANGE"
    RETIREMENT = "RETIREMENT"


class EvidenceSource(StrEnum):
    """The measurements that the gateway runs itself."""

    CONFORMANCE = "CONFORMANCE"
    LOAD_RUN = "LOAD_RUN"
    REPLAY = "REPLAY"


class EvidenceSettings(Section):
    """One evidence that a proposal must carry."""

    kind: EvidenceSource
    bounds: tuple[BoundText, ...] = Field(
        default=(), description="Each `figure >= 0.99`, `figure <= 500` or `figure == 0`."
    )
    max_age_days: PositiveDays = Field(
        default=7.0, description="Older figures say little about what is deployed now."
    )


class RuleSettings(Section):
    """What one kind of change needs."""

    required: bool = Field(
        default=True, description="A rule that is written down holds, unless it says otherwise."
    )
    approvals: dict[str, Annotated[int, Field(ge=1, le=100)]] = Field(
        default_factory=dict, description="Role -> how many people of it must agree."
    )
    evidence: tuple[EvidenceSettings, ...] = ()
    valid_days: PositiveDays = Field(
        default=14.0, description="An approval that is not used by then lapses."
    )


class BoardSettings(Section):
    """Governed changes (R26)."""

    rules: dict[GovernedChange, RuleSettings] = Field(
        default_factory=dict, description="Kind of change -> rule. Empty: nothing is governed."
    )
    roles: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Role -> subjects, such as token:1f2e3d4c5b6a (`acp tokens list`), or local"
        " while tokens are off.",
    )
    evidence_timeout_s: Annotated[int, Field(ge=1, le=3_600)] = Field(
        default=900, description="A measurement that takes longer is stopped and not attached."
    )
