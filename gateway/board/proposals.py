"""A proposal: a change that somebody wants, the figures behind it, and who agrees (R26).

Pure values and the moves between them; each move gives a new proposal or refuses with a reason.
A vote counts for the content that its voter saw: evidence that is attached later makes everybody
vote again. The one who proposes does not vote.
"""

import enum
import hashlib
from typing import Final

import msgspec

EVIDENCE_MAX: Final = 20
"""More attempts than this at a good figure are no evidence any more."""
VOTES_MAX: Final = 100


class ChangeKind(enum.StrEnum):
    """What kind of change it is; the policy has a rule for each."""

    MAJOR_VERSION = "MAJOR_VERSION"
    NEW_COMPONENT = "NEW_COMPONENT"
    SLA_CHANGE = "SLA_CHANGE"
    RETIREMENT = "RETIREMENT"


class EvidenceKind(enum.StrEnum):
    """Where figures come from; the gateway runs each of these itself."""

    CONFORMANCE = "CONFORMANCE"
    LOAD_RUN = "LOAD_RUN"
    REPLAY = "REPLAY"


class Status(enum.StrEnum):
    """Where a proposal stands. APPROVED may still be applied; the others are ends."""

    OPEN = "OPEN"
    APPROVED = "APPROVED"
    APPLIED = "APPLIED"
    REJECTED = "REJECTED"
    WITHDRAWN = "WITHDRAWN"
    EXPIRED = "EXPIRED"


PENDING: Final = frozenset({Status.OPEN, Status.APPROVED})
"""What still takes evidence, votes and a withdrawal; everything else is an end."""


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What shall change. `subject`: `component:name@major` or `workflow:name@version`.

    `digest` binds the approval to one content (SHA-256 of the workflow file, or of the card as
    `acp components` shows it); left out, whatever has that name and version is meant.
    """

    kind: ChangeKind
    subject: str
    digest: str = ""

    def covers(self, wanted: "Change") -> bool:
        """Whether an approval of this change allows `wanted`."""
        same = self.kind is wanted.kind and self.subject == wanted.subject
        return same and self.digest in ("", wanted.digest)


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures that the gateway measured itself, and how: the command, its exit, its report."""

    evidence_id: str
    kind: EvidenceKind
    at_ms: int
    figures: dict[str, float]
    command: tuple[str, ...]
    exit_code: int
    report_sha256: str
    asked_by: str = ""


class Vote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's word in one role, for the content with that digest."""

    by: str
    role: str
    agrees: bool
    at_ms: int
    content: str
    comment: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposal as it is stored and shown."""

    proposal_id: str
    tenant: str
    change: Change
    title: str
    proposer: str
    opened_at_ms: int
    rationale: str = ""
    status: Status = Status.OPEN
    evidence: tuple[Evidence, ...] = ()
    votes: tuple[Vote, ...] = ()
    approved_at_ms: int = 0
    closed_at_ms: int = 0
    closed_by: str = ""

    def newest(self, kind: EvidenceKind) -> Evidence | None:
        """The evidence of this kind that counts: the last one, good or bad."""
        return next((one for one in reversed(self.evidence) if one.kind is kind), None)


class MoveRefused(Exception):
    """The proposal does not take this move; the message says why."""


def content_digest(proposal: Proposal) -> str:
    """SHA-256 of what a voter judges: the change, the words, the evidence."""
    judged = (proposal.change, proposal.title, proposal.rationale, proposal.evidence)
    return hashlib.sha256(msgspec.json.encode(judged)).hexdigest()


def with_evidence(proposal: Proposal, evidence: Evidence) -> Proposal:
    """Attached; earlier votes no longer count, an approval is open again."""
    _check_pending(proposal, "attach evidence")
    if len(proposal.evidence) >= EVIDENCE_MAX:
        raise MoveRefused(f"it has {EVIDENCE_MAX} evidences already: open another proposal")
    return msgspec.structs.replace(
        proposal,
        evidence=(*proposal.evidence, evidence),
        status=Status.OPEN,
        approved_at_ms=0,
    )


def with_vote(proposal: Proposal, vote: Vote) -> Proposal:
    """Counted; a person's later vote replaces the earlier one. A rejection ends the proposal."""
    _check_pending(proposal, "vote")
    if vote.by == proposal.proposer:
        raise MoveRefused("who proposes a change does not vote on it")
    if vote.agrees and vote.content != content_digest(proposal):
        raise MoveRefused("it has changed since you read it: read it again, then vote")
    others = tuple(one for one in proposal.votes if one.by != vote.by)
    if len(others) >= VOTES_MAX:
        raise MoveRefused(f"it has {VOTES_MAX} votes already")
    voted = msgspec.structs.replace(proposal, votes=(*others, vote))
    if vote.agrees:
        return voted
    return _closed(voted, Status.REJECTED, at_ms=vote.at_ms, by=vote.by)


def approved(proposal: Proposal, *, at_ms: int) -> Proposal:
    """Nothing is missing any more."""
    _check_pending(proposal, "approve")
    return msgspec.structs.replace(proposal, status=Status.APPROVED, approved_at_ms=at_ms)


def applied(proposal: Proposal, *, at_ms: int, by: str) -> Proposal:
    """The change has happened under this approval."""
    if proposal.status is not Status.APPROVED:
        raise MoveRefused(f"it is {proposal.status.value}, not APPROVED")
    return _closed(proposal, Status.APPLIED, at_ms=at_ms, by=by)


def withdrawn(proposal: Proposal, *, at_ms: int, by: str) -> Proposal:
    _check_pending(proposal, "withdraw")
    return _closed(proposal, Status.WITHDRAWN, at_ms=at_ms, by=by)


def expired(proposal: Proposal, *, at_ms: int) -> Proposal:
    """The approval was not used in its time."""
    _check_pending(proposal, "expire")
    return _closed(proposal, Status.EXPIRED, at_ms=at_ms, by="")


def _closed(proposal: Proposal, status: Status, *, at_ms: int, by: str) -> Proposal:
    return msgspec.structs.replace(proposal, status=status, closed_at_ms=at_ms, closed_by=by)


def _check_pending(proposal: Proposal, what: str) -> None:
    if proposal.status not in PENDING:
        raise MoveRefused(f"cannot {what}: it is {proposal.status.value}")
