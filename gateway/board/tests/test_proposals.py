"""Proposals as a game of moves, held against the few sentences that must always be true."""

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.board.policy import Bound, Compare, EvidenceRule, Policy, Quorum, Rule, missing
from gateway.board.proposals import (
    PENDING,
    Change,
    ChangeKind,
    Evidence,
    EvidenceKind,
    MoveRefused,
    Proposal,
    Status,
    Vote,
    applied,
    approved,
    content_digest,
    expired,
    with_evidence,
    with_vote,
    withdrawn,
)

CHANGE = Change(kind=ChangeKind.NEW_COMPONENT, subject="component:fees@1", digest="d")
BOUND = Bound(figure="counts.failed", compare=Compare.EQUAL, value=0)
POLICY = Policy(
    rules={
        ChangeKind.NEW_COMPONENT: Rule(
            required=True,
            quorums=(Quorum(role="owner"), Quorum(role="sre", count=2)),
            evidence=(EvidenceRule(kind=EvidenceKind.CONFORMANCE, bounds=(BOUND,), max_age_ms=50),),
        )
    },
    roles={"owner": frozenset({"ann"}), "sre": frozenset({"bob", "cem", "pat"})},
)


def fresh() -> Proposal:
    return Proposal(
        proposal_id="p", tenant="t", change=CHANGE, title="fees", proposer="pat", opened_at_ms=0
    )


def evidence(failed: float, *, at_ms: int = 0) -> Evidence:
    return Evidence(
        evidence_id=f"e{at_ms}-{failed}",
        kind=EvidenceKind.CONFORMANCE,
        at_ms=at_ms,
        figures={"counts.failed": failed},
        command=("conformance",),
        exit_code=0,
        report_sha256="",
    )


def vote(proposal: Proposal, by: str, role: str, *, agrees: bool = True) -> Vote:
    return Vote(by=by, role=role, agrees=agrees, at_ms=1, content=content_digest(proposal))


def voted(proposal: Proposal, **roles: str) -> Proposal:
    for by, role in roles.items():
        proposal = with_vote(proposal, vote(proposal, by, role))
    return proposal


def test_a_proposal_says_everything_that_is_missing() -> None:
    assert missing(fresh(), POLICY, now_ms=0) == (
        "evidence CONFORMANCE: none is attached",
        "approvals of owner: 0 of 1",
        "approvals of sre: 0 of 2",
    )


def test_with_good_figures_and_every_role_nothing_is_missing() -> None:
    one = voted(with_evidence(fresh(), evidence(0)), ann="owner", bob="sre", cem="sre")
    assert missing(one, POLICY, now_ms=50) == ()
    assert missing(one, POLICY, now_ms=51) != (), "the figures have grown old"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (evidence(3), "evidence CONFORMANCE: counts.failed == 0 does not hold, it is 3"),
        (
            msgspec.structs.replace(evidence(0), figures={}),
            "evidence CONFORMANCE: it has no figure 'counts.failed'",
        ),
    ],
)
def test_a_figure_that_breaks_its_bound_or_is_not_there_stands_in_the_way(
    found: Evidence, said: str
) -> None:
    assert said in missing(with_evidence(fresh(), found), POLICY, now_ms=0)


def test_good_figures_do_not_hide_newer_bad_ones() -> None:
    both = with_evidence(with_evidence(fresh(), evidence(0)), evidence(2, at_ms=1))
    assert any("does not hold" in one for one in missing(both, POLICY, now_ms=1))


def test_a_vote_counts_only_for_what_its_voter_saw() -> None:
    one = voted(with_evidence(fresh(), evidence(0)), ann="owner", bob="sre", cem="sre")
    again = with_evidence(one, evidence(0, at_ms=1))
    assert "approvals of owner: 0 of 1" in missing(again, POLICY, now_ms=1)
    with pytest.raises(MoveRefused, match="read it again"):
        with_vote(again, vote(one, "ann", "owner"))


def test_who_lost_the_role_lost_the_vote() -> None:
    one = voted(with_evidence(fresh(), evidence(0)), ann="owner", bob="sre", cem="sre")
    left = Policy(rules=POLICY.rules, roles={**POLICY.roles, "sre": frozenset({"bob"})})
    assert missing(one, left, now_ms=0) == ("approvals of sre: 1 of 2",)


def test_one_person_is_one_vote_whatever_the_roles() -> None:
    both = Policy(rules=POLICY.rules, roles={**POLICY.roles, "owner": frozenset({"bob"})})
    one = voted(with_evidence(fresh(), evidence(0)), bob="sre")
    one = with_vote(one, vote(one, "bob", "owner"))
    assert missing(one, both, now_ms=0) == ("approvals of sre: 0 of 2",)


def test_the_proposer_does_not_vote() -> None:
    with pytest.raises(MoveRefused, match="does not vote"):
        with_vote(fresh(), vote(fresh(), "pat", "sre"))


def test_an_approval_covers_its_own_change_and_content_only() -> None:
    assert CHANGE.covers(CHANGE)
    assert not CHANGE.covers(msgspec.structs.replace(CHANGE, digest="other"))
    assert not CHANGE.covers(msgspec.structs.replace(CHANGE, subject="component:fees@2"))
    assert not CHANGE.covers(msgspec.structs.replace(CHANGE, kind=ChangeKind.RETIREMENT))
    assert msgspec.structs.replace(CHANGE, digest="").covers(CHANGE)


class Moves(RuleBasedStateMachine):
    """Any order of moves: ends are ends, and APPROVED means that nothing was missing."""

    def __init__(self) -> None:
        super().__init__()
        self.one = fresh()
        self.now_ms = 0
        self.ended: Proposal | None = None

    def _after(self, one: Proposal) -> None:
        self.one = one
        if one.status not in PENDING:
            self.ended = one

    @rule(failed=st.sampled_from([0.0, 1.0]))
    def measure(self, failed: float) -> None:
        self.now_ms += 1
        try:
            self._after(with_evidence(self.one, evidence(failed, at_ms=self.now_ms)))
            assert self.one.status is Status.OPEN, "new figures open an approval again"
        except MoveRefused:
            assert self.ended is not None or len(self.one.evidence) == 20

    @rule(by=st.sampled_from(["ann", "bob", "cem", "pat", "eve"]), agrees=st.booleans())
    def give_vote(self, by: str, agrees: bool) -> None:
        role = "owner" if by == "ann" else "sre"
        try:
            self._after(with_vote(self.one, vote(self.one, by, role, agrees=agrees)))
        except MoveRefused:
            assert self.ended is not None or by == "pat"

    @precondition(lambda self: self.one.status is Status.OPEN)
    @rule()
    def approve_if_complete(self) -> None:
        if not missing(self.one, POLICY, now_ms=self.now_ms):
            self._after(approved(self.one, at_ms=self.now_ms))

    @rule(move=st.sampled_from(["apply", "withdraw", "expire"]))
    def close(self, move: str) -> None:
        before = self.one.status
        try:
            match move:
                case "apply":
                    self._after(applied(self.one, at_ms=self.now_ms, by="gateway"))
                    assert before is Status.APPROVED
                case "withdraw":
                    self._after(withdrawn(self.one, at_ms=self.now_ms, by="pat"))
                case _:
                    self._after(expired(self.one, at_ms=self.now_ms))
        except MoveRefused:
            assert before is not Status.APPROVED

    @invariant()
    def an_end_stays(self) -> None:
        assert self.ended is None or self.one == self.ended

    @invariant()
    def what_is_approved_has_all_roles_and_good_figures(self) -> None:
        if self.one.status is Status.APPROVED:
            agreeing = {one.by for one in self.one.votes if one.agrees}
            assert "ann" in agreeing
            assert len(agreeing & {"bob", "cem"}) == 2
            newest = self.one.newest(EvidenceKind.CONFORMANCE)
            assert newest is not None
            assert newest.figures["counts.failed"] == 0


TestMoves = Moves.TestCase
