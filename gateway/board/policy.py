"""What a change needs before it may happen: which roles agree, and which figures stand behind it.

Pure values, made once from the settings. A kind of change without a rule, or whose rule is not
`required`, happens at once, as it always did.
"""

import enum
import operator
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.board.proposals import (
    Change,
    ChangeKind,
    Evidence,
    EvidenceKind,
    Proposal,
    content_digest,
)

DAY_MS: Final = 86_400_000


class Compare(enum.StrEnum):
    """How a figure is held against its bound."""

    AT_LEAST = ">="
    AT_MOST = "<="
    EQUAL = "=="


_COMPARE: Final[Mapping[Compare, Callable[[float, float], bool]]] = {
    Compare.AT_LEAST: operator.ge,
    Compare.AT_MOST: operator.le,
    Compare.EQUAL: operator.eq,
}


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of an evidence and what it must be, such as `failed == 0`."""

    figure: str
    compare: Compare
    value: float

    def __str__(self) -> str:
        return f"{self.figure} {self.compare.value} {self.value:g}"


class EvidenceRule(msgspec.Struct, frozen=True, kw_only=True):
    """An evidence of this kind, not older than `max_age_ms`, whose figures keep every bound."""

    kind: EvidenceKind
    bounds: tuple[Bound, ...] = ()
    max_age_ms: int = 7 * DAY_MS


class Quorum(msgspec.Struct, frozen=True, kw_only=True):
    """So many people of this role."""

    role: str
    count: int = 1


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of change needs. `valid_ms`: an approval that is not used by then lapses."""

    required: bool = False
    quorums: tuple[Quorum, ...] = ()
    evidence: tuple[EvidenceRule, ...] = ()
    valid_ms: int = 14 * DAY_MS


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """All rules, and who has which role (subjects of tokens; `local` while tokens are off)."""

    rules: Mapping[ChangeKind, Rule] = {}
    roles: Mapping[str, frozenset[str]] = {}

    def rule(self, kind: ChangeKind) -> Rule:
        return self.rules.get(kind, Rule())

    def requires(self, change: Change) -> bool:
        return self.rule(change.kind).required

    def may_vote(self, subject: str, role: str) -> bool:
        return subject in self.roles.get(role, frozenset())


def missing(proposal: Proposal, policy: Policy, *, now_ms: int) -> tuple[str, ...]:
    """What still stands between the proposal and its approval, a sentence each; empty: nothing."""
    rule = policy.rule(proposal.change.kind)
    return (*_missing_evidence(proposal, rule, now_ms=now_ms), *_missing_votes(proposal, policy))


def _missing_evidence(proposal: Proposal, rule: Rule, *, now_ms: int) -> list[str]:
    said = []
    for wanted in rule.evidence:
        newest = proposal.newest(wanted.kind)
        if newest is None:
            said.append(f"evidence {wanted.kind.value}: none is attached")
        elif now_ms - newest.at_ms > wanted.max_age_ms:
            said.append(f"evidence {wanted.kind.value}: the newest is too old, attach it again")
        else:
            said += _broken_bounds(newest, wanted)
    return said


def _broken_bounds(evidence: Evidence, rule: EvidenceRule) -> list[str]:
    said = []
    for bound in rule.bounds:
        value = evidence.figures.get(bound.figure)
        if value is None:
            said.append(f"evidence {rule.kind.value}: it has no figure {bound.figure!r}")
        elif not _COMPARE[bound.compare](value, bound.value):
            said.append(f"evidence {rule.kind.value}: {bound} does not hold, it is {value:g}")
    return said


def _missing_votes(proposal: Proposal, policy: Policy) -> list[str]:
    """Votes count for the content they saw, from those who still have the role."""
    content = content_digest(proposal)
    said = []
    for quorum in policy.rule(proposal.change.kind).quorums:
        agreed = sum(
            vote.agrees
            and vote.role == quorum.role
            and vote.content == content
            and policy.may_vote(vote.by, vote.role)
            for vote in proposal.votes
        )
        if agreed < quorum.count:
            said.append(f"approvals of {quorum.role}: {agreed} of {quorum.count}")
    return said
