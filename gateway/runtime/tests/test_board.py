"""The board over a store: refusals that say what to do, lapses, restarts, and the audit trail."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from acp_spec.model.card import Card
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import RegisterRequest
from gateway.board.audit import AuditLog, first_break, read_entries
from gateway.board.changes import Release
from gateway.board.policy import Policy, Quorum, Rule
from gateway.board.proposals import Change, ChangeKind, Status
from gateway.governance.sla import Sla
from gateway.runtime.board import (
    Board,
    BoardParts,
    ProposalRequest,
    ProposalView,
    VoteRequest,
)
from gateway.runtime.clock import ManualClock, SeededChance
from gateway.runtime.measuring import figures_of
from gateway.runtime.principal import ALL_SCOPES, Principal
from gateway.runtime.registry import Registry
from gateway.runtime.tests.stub_components import StubComponents, StubConnection, card
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore

T = TypeVar("T")
VALID_MS = 1_000
RULE = Rule(required=True, quorums=(Quorum(role="owner"),), valid_ms=VALID_MS)
POLICY = Policy(
    rules=dict.fromkeys(ChangeKind, RULE),
    roles={"owner": frozenset({"ann"})},
)


def do(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def person(name: str) -> Principal:
    return Principal(tenant="t", scopes=ALL_SCOPES, subject=name)


ANN, PAT = person("ann"), person("pat")
FEES = Card(name="fees", version="1.0.0")


class House:
    """A board whose store outlives it."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(10_000)
        self.policy = policy
        self.start()

    def start(self) -> None:
        durable = WriteThrough(self.store)
        self.board = Board(
            BoardParts(
                store=self.store,
                durable=durable,
                audit=AuditLog(self.store, durable, now_ms=self.clock.now_ms),
                clock=self.clock,
                chance=SeededChance(self.clock.now_ms()),
            ),
            self.policy,
        )

    def propose(self, kind: ChangeKind, subject: str, digest: str = "") -> ProposalView:
        change = Change(kind=kind, subject=subject, digest=digest)
        return do(self.board.propose(ProposalRequest(change=change, title="why"), PAT))

    def agree(self, view: ProposalView) -> ProposalView:
        vote = VoteRequest(role="owner", agrees=True, content=view.content)
        return do(self.board.vote(view.proposal.proposal_id, vote, principal=ANN))


def refused(message: str) -> Any:
    return pytest.raises(AcpFailure, match=message)


def test_a_new_component_is_refused_with_the_proposal_to_open_then_with_the_open_one() -> None:
    house = House()
    with refused("component:fees@1: NEW_COMPONENT needs an approved proposal; open one") as told:
        house.board.permit_component(FEES, "d", principal=PAT)
    assert told.value.error.reason == "PERMISSION_DENIED"
    view = house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1")
    with refused(f"proposal {view.proposal.proposal_id} for it is still open"):
        house.board.permit_component(FEES, "d", principal=PAT)


def test_an_approval_is_used_up_by_the_change_and_the_change_stays_known() -> None:
    house = House()
    view = house.agree(house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1"))
    assert view.proposal.status is Status.APPROVED
    house.board.permit_component(FEES, "d", principal=PAT).done()
    assert house.board.get(view.proposal.proposal_id).proposal.status is Status.APPLIED
    house.start()  # a restart of the gateway
    house.board.permit_component(FEES, "other card", principal=PAT).done()


def test_a_permit_that_came_to_nothing_uses_nothing_up() -> None:
    house = House()
    view = house.agree(house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1"))
    house.board.permit_component(FEES, "d", principal=PAT)
    assert house.board.get(view.proposal.proposal_id).proposal.status is Status.APPROVED


def test_an_approval_bound_to_a_digest_lets_no_other_content_in() -> None:
    house = House()
    house.agree(house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1", digest="good"))
    with refused("needs an approved proposal"):
        house.board.permit_component(FEES, "bad", principal=PAT)
    house.board.permit_component(FEES, "good", principal=PAT).done()


def test_an_approval_that_nobody_used_lapses() -> None:
    house = House()
    view = house.agree(house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1"))
    house.clock.advance(VALID_MS + 1)
    with refused("needs an approved proposal"):
        house.board.permit_component(FEES, "d", principal=PAT)
    assert house.board.get(view.proposal.proposal_id).proposal.status is Status.EXPIRED


def test_a_sla_change_needs_approval_and_the_way_back_does_not() -> None:
    house = House()
    one = Release(
        name="w",
        version="1.0.0",
        sha256="1",
        sla=frozenset({Sla(component="fees", max_latency_ms=100)}),
    )
    two = Release(name="w", version="1.1.0", sha256="2")
    house.board.permit_activation(None, one, principal=PAT).done()
    with refused("workflow:w@1.1.0: SLA_CHANGE needs"):
        house.board.permit_activation(one, two, principal=PAT)
    house.agree(house.propose(ChangeKind.SLA_CHANGE, "workflow:w@1.1.0"))
    house.board.permit_activation(one, two, principal=PAT).done()
    house.board.permit_activation(two, one, principal=PAT).done()


def test_what_served_before_the_policy_goes_on_serving() -> None:
    house = House(Policy())
    house.board.permit_component(FEES, "d", principal=PAT).done()
    house.policy = POLICY
    house.start()
    house.board.permit_component(FEES, "d", principal=PAT).done()


def test_a_version_that_comes_while_no_other_is_there_needs_its_approval_all_the_same() -> None:
    """The first of a name becomes the active one: what is not approved must not come in at all."""
    house = House()
    components = StubComponents()
    registry = Registry(
        house.store, WriteThrough(house.store), dialer=components, clock=house.clock
    )
    registry.permit = house.board.permit_component

    async def comes(version: str) -> str:
        url = components.serve(f"http://fees-{version}", card("fees", version))
        shown = await registry.register(RegisterRequest(url=url), PAT)
        return shown.component_id

    def dials(version: str) -> None:
        connection = StubConnection(components, "")
        registry.attach(card("fees", version), connection, instance_id="i", principal=PAT)

    async def story() -> None:
        for asked in ("NEW_COMPONENT", "MAJOR_VERSION"):
            version = "1.0.0" if asked == "NEW_COMPONENT" else "2.0.0"
            subject = f"component:fees@{version[0]}"
            with refused(f"{subject}: {asked} needs an approved proposal"):
                await comes(version)
            with refused(f"{subject}: {asked} needs an approved proposal"):
                dials(version)
            assert registry.list() == ()
            assert registry.catalog().active == {}
            request = ProposalRequest(
                change=Change(kind=ChangeKind[asked], subject=subject), title="why"
            )
            view = await house.board.propose(request, PAT)
            vote = VoteRequest(role="owner", agrees=True, content=view.content)
            await house.board.vote(view.proposal.proposal_id, vote, principal=ANN)
            there = await comes(version)
            assert registry.catalog().active == {"fees": version}
            await registry.delete(there)
        assert await comes("1.7.0"), "a minor version of what was approved is no governed change"

    do(story())


def test_without_a_rule_nothing_is_governed() -> None:
    house = House(Policy())
    house.board.permit_component(FEES, "d", principal=PAT).done()


def test_only_those_with_the_role_vote_and_only_the_proposer_withdraws() -> None:
    house = House()
    view = house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1")
    proposal_id = view.proposal.proposal_id
    vote = VoteRequest(role="owner", agrees=True, content=view.content)
    with refused("'pat' is not 'owner'"):
        do(house.board.vote(proposal_id, vote, principal=PAT))
    with refused("only 'pat'"):
        do(house.board.withdraw(proposal_id, principal=ANN))
    assert do(house.board.withdraw(proposal_id, principal=PAT)).proposal.closed_by == "pat"
    with refused("cannot vote: it is WITHDRAWN"):
        house.agree(view)


def test_every_move_stands_in_an_unbroken_audit_log() -> None:
    house = House()
    house.agree(house.propose(ChangeKind.NEW_COMPONENT, "component:fees@1"))
    house.board.permit_component(FEES, "d", principal=PAT).done()
    entries = tuple(read_entries(house.store))
    assert [(one.action, one.actor) for one in entries] == [
        ("proposal.opened", "pat"),
        ("proposal.voted", "ann"),
        ("proposal.approved", "gateway"),
        ("proposal.applied", "pat"),
        ("component.came", "pat"),
    ]
    assert first_break(entries) is None


def test_figures_are_the_numbers_of_a_document_by_their_path() -> None:
    text = b'{"conformant": true, "counts": {"FAILED": 0}, "results": [1, 2], "name": "x"}'
    assert figures_of(text) == {"conformant": 1.0, "counts.FAILED": 0.0, "results.count": 2.0}
    listed = b'{"checks": [{"figures": {"component": "fees", "p95_ms": 7}}, {"passed": true}]}'
    assert figures_of(listed) == {"checks.count": 2.0, "checks.fees.figures.p95_ms": 7.0}
    assert figures_of(b'progress\n{"p99_ms": 12.5}\n') == {"p99_ms": 12.5}
    assert figures_of(b"nothing of the kind") == figures_of(b"") == {}
    assert figures_of(b'{"x": 1e999}') == {}
