"""The board of one gateway: keeps proposals, counts votes, and stands before governed changes.

The registry and the workflows ask here before they change what serves (`permit_...`) and say
when it has happened (`Permit.done`). A refusal names what a person has to do next. Everything is
durable, and every move stands in the audit log before it is answered.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.card import Card
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import Component
from gateway.board import proposals
from gateway.board.audit import AuditLog
from gateway.board.changes import (
    Release,
    activation_changes,
    component_change,
    component_subject,
    retirement,
)
from gateway.board.policy import Policy, missing
from gateway.board.proposals import (
    Change,
    Evidence,
    MoveRefused,
    Proposal,
    Status,
    Vote,
    content_digest,
)
from gateway.runtime.clock import Chance, Clock
from gateway.runtime.permits import FREE, Permit
from gateway.runtime.principal import Principal, Scope
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.rows import read_row

PROPOSALS_MAX: Final = 10_000
KNOWN_MAX: Final = 100_000
"""Names that ever served; where anybody may register any name, they must not fill the memory."""
_ID_BYTES: Final = 6
_PROPOSAL, _KNOWN = b"proposal\0", b"known\0"
_TITLE_CHARACTERS_MAX: Final = 200
_TEXT_CHARACTERS_MAX: Final = 10_000
_DIGEST_CHARACTERS: Final = 64


class ProposalRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody wants to change, and why."""

    change: Change
    title: str
    rationale: str = ""


class VoteRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`content`: the `content` of the proposal as the voter read it."""

    role: str
    agrees: bool
    content: str = ""
    comment: str = ""


class ProposalView(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal with what a reader needs to act: what is missing, and what a vote is for."""

    proposal: Proposal
    content: str
    missing: tuple[str, ...]


class ProposalPage(msgspec.Struct, frozen=True, kw_only=True):
    """Proposals, newest first."""

    proposals: tuple[ProposalView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardParts:
    """What a board stands on."""

    store: Store
    durable: Durable
    audit: AuditLog
    clock: Clock
    chance: Chance


class Board:
    """All proposals of one gateway, in memory and in the store."""

    def __init__(self, parts: BoardParts, policy: Policy) -> None:
        store = parts.store
        self.policy: Final = policy
        self._durable = parts.durable
        self._audit = parts.audit
        self._clock = parts.clock
        self._chance = parts.chance
        self.is_last: Callable[[Component], bool] = lambda component: False
        """Whether it is the last of something in use; the assembly knows."""
        self.is_served: Callable[[Card], bool] = lambda card: False
        """Whether an instance of this version is registered already."""
        self._rows = {
            row.proposal_id: row
            for key, value in store.scan(Table.GOVERNANCE, _PROPOSAL)
            for row in (read_row(Table.GOVERNANCE, (key, value), kind=Proposal),)
        }
        self._known = {
            key.removeprefix(_KNOWN).decode() for key, _ in store.scan(Table.GOVERNANCE, _KNOWN)
        }

    # ---- proposals ------------------------------------------------------------------------------

    async def propose(self, request: ProposalRequest, principal: Principal) -> ProposalView:
        """Open a proposal; INVALID_REQUEST if it says nothing."""
        _check_text("title", request.title, most=_TITLE_CHARACTERS_MAX)
        _check_text("rationale", request.rationale, most=_TEXT_CHARACTERS_MAX, least=0)
        _check_text("change.subject", request.change.subject, most=_TITLE_CHARACTERS_MAX)
        _check_text("change.digest", request.change.digest, most=_DIGEST_CHARACTERS, least=0)
        if not request.change.subject.startswith(("component:", "workflow:")):
            text = "change.subject: write component:name@major or workflow:name@version"
            raise _failure(Reason.INVALID_REQUEST, text)
        if len(self._rows) >= PROPOSALS_MAX:
            raise _failure(Reason.INVALID_REQUEST, f"there are {PROPOSALS_MAX} proposals already")
        proposal = Proposal(
            proposal_id=self._chance.random_bytes(_ID_BYTES).hex(),
            tenant=principal.tenant,
            change=request.change,
            title=request.title,
            rationale=request.rationale,
            proposer=principal.subject,
            opened_at_ms=self._clock.now_ms(),
        )
        return await self._kept("proposal.opened", proposal, principal=principal)

    def list(self, *, status: Status | None = None) -> tuple[ProposalView, ...]:
        """The proposals, newest first; of one status, if it is named."""
        for proposal_id in tuple(self._rows):
            self._current(proposal_id)
        found = [row for row in self._rows.values() if status in (None, row.status)]
        found.sort(key=lambda row: (-row.opened_at_ms, row.proposal_id))
        return tuple(map(self._view, found))

    def get(self, proposal_id: str) -> ProposalView:
        """One proposal; raises NOT_FOUND."""
        return self._view(self._current(proposal_id))

    async def attach(
        self, proposal_id: str, evidence: Evidence, *, principal: Principal
    ) -> ProposalView:
        """Attach figures that the gateway measured."""
        moved = self._moved(lambda: proposals.with_evidence(self._current(proposal_id), evidence))
        return await self._kept("proposal.evidence", moved, principal=principal)

    async def vote(
        self, proposal_id: str, request: VoteRequest, *, principal: Principal
    ) -> ProposalView:
        """Agree or reject in a role; PERMISSION_DENIED for a role that the caller has not."""
        if not self.policy.may_vote(principal.subject, request.role):
            text = f"role: {principal.subject!r} is not {request.role[:100]!r}; see board.roles"
            raise _failure(Reason.PERMISSION_DENIED, text)
        _check_text("comment", request.comment, most=_TEXT_CHARACTERS_MAX, least=0)
        vote = Vote(
            by=principal.subject,
            role=request.role,
            agrees=request.agrees,
            at_ms=self._clock.now_ms(),
            content=request.content,
            comment=request.comment,
        )
        moved = self._moved(lambda: proposals.with_vote(self._current(proposal_id), vote))
        return await self._kept("proposal.voted", moved, principal=principal)

    async def withdraw(self, proposal_id: str, *, principal: Principal) -> ProposalView:
        """Take a proposal back; only its proposer may."""
        current = self._current(proposal_id)
        if current.proposer != principal.subject:
            text = f"only {current.proposer!r}, who proposed it, withdraws it; others reject it"
            raise _failure(Reason.PERMISSION_DENIED, text)
        now_ms = self._clock.now_ms()
        moved = self._moved(
            lambda: proposals.withdrawn(current, at_ms=now_ms, by=principal.subject)
        )
        return await self._kept("proposal.withdrawn", moved, principal=principal)

    def remember(self, components: Iterable[Component], workflows: Iterable[Release]) -> None:
        """What serves at a start is known: the policy may be newer than what it governs."""
        for component in components:
            self._know(component_subject(component.card.name, component.card.version))
        for workflow in workflows:
            self._know(workflow.subject)

    # ---- before a change ------------------------------------------------------------------------

    def permit_component(self, card: Card, digest: str, *, principal: Principal) -> Permit:
        """May this component serve? Raises PERMISSION_DENIED with what to propose."""
        permit = self._permit_release(card, digest, principal=principal)
        if self.is_served(card):
            return permit

        def done() -> None:
            permit.done()
            self._note(
                "component.came", _pin(card), principal=principal, details={"digest": digest}
            )

        return Permit(done)

    def _permit_release(self, card: Card, digest: str, *, principal: Principal) -> Permit:
        """What is known, which is nearly every registration, is not compared with all names."""
        subject = component_subject(card.name, card.version)
        if subject in self._known:
            return FREE
        names = {one.removeprefix("component:").rpartition("@")[0] for one in self._known}
        change = component_change(
            card.name, card.version, digest=digest, known=self._known, names=names
        )
        assert change is not None, "only what is known is no change"
        return self._permit((change,), subject, principal=principal)

    def permit_activation(
        self, before: Release | None, after: Release, *, principal: Principal
    ) -> Permit:
        """May this workflow version become the active one?"""
        changes = activation_changes(before, after, known=self._known)
        permit = self._permit(changes, after.subject, principal=principal)

        def done() -> None:
            permit.done()
            self._note("workflow.activated", after.subject, principal=principal)

        return Permit(done)

    def permit_removal(self, component: Component, what: str, *, principal: Principal) -> Permit:
        """May this instance be drained or removed? Its retirement is governed if it is the last of
        its major version and an active workflow names it, unless it goes by its own token."""
        if not principal.may(Scope.OPERATE):
            return FREE
        permit = FREE
        if self.is_last(component):
            change = retirement(component.card.name, component.card.version)
            permit = self._permit((change,), "", principal=principal)

        def done() -> None:
            permit.done()
            details = {"component_id": component.component_id}
            self._note(
                f"component.{what}", _pin(component.card), principal=principal, details=details
            )

        return Permit(done)

    def _permit(self, changes: Iterable[Change], subject: str, *, principal: Principal) -> Permit:
        """All changes approved, or refused; `subject` is known once it is done."""
        used = [self._approval(change) for change in changes if self.policy.requires(change)]

        def done() -> None:
            for proposal_id in used:
                self._apply(proposal_id, principal)
            if subject:
                self._know(subject)

        return Permit(done)

    def _approval(self, change: Change) -> str:
        """The approved proposal that covers the change; PERMISSION_DENIED without one."""
        pending = ""
        for proposal_id in tuple(self._rows):
            row = self._current(proposal_id)
            if not row.change.covers(change):
                continue
            if row.status is Status.APPROVED:
                return proposal_id
            if row.status is Status.OPEN:
                pending = proposal_id
        raise _needs_approval(change, pending)

    def _apply(self, proposal_id: str, principal: Principal) -> None:
        row = self._rows[proposal_id]
        if row.status is not Status.APPROVED:
            return  # a second registration came in between; the change is the same
        by, now_ms = principal.subject, self._clock.now_ms()
        moved = proposals.applied(row, at_ms=now_ms, by=by)
        self._put("proposal.applied", moved, principal=principal)
        if row.change.kind is proposals.ChangeKind.RETIREMENT:
            self._known.discard(row.change.subject)
            self._durable.delete(Table.GOVERNANCE, _KNOWN + row.change.subject.encode())

    def _know(self, subject: str) -> None:
        if subject not in self._known and len(self._known) < KNOWN_MAX:
            self._known.add(subject)
            self._durable.put(Table.GOVERNANCE, _KNOWN + subject.encode(), b"")

    # ---- inside ---------------------------------------------------------------------------------

    def _current(self, proposal_id: str) -> Proposal:
        """The proposal as time has left it: an approval that nobody used lapses."""
        row = self._rows.get(proposal_id)
        if row is None:
            text = f"no proposal {proposal_id[:100]!r}: list them with GET /v1/proposals"
            raise _failure(Reason.NOT_FOUND, text)
        now_ms = self._clock.now_ms()
        lapses_ms = row.approved_at_ms + self.policy.rule(row.change.kind).valid_ms
        if row.status is Status.APPROVED and now_ms > lapses_ms:
            row = proposals.expired(row, at_ms=now_ms)
            self._put("proposal.expired", row)
        return row

    def _moved(self, move: Callable[[], Proposal]) -> Proposal:
        try:
            return move()
        except MoveRefused as refusal:
            raise _failure(Reason.INVALID_REQUEST, f"proposal: {refusal}") from None

    async def _kept(self, action: str, proposal: Proposal, *, principal: Principal) -> ProposalView:
        """Written, approved if that was the last thing missing, and answered once durable."""
        self._put(action, proposal, principal=principal)
        now_ms = self._clock.now_ms()
        complete = not missing(proposal, self.policy, now_ms=now_ms)
        if proposal.status is Status.OPEN and complete:
            proposal = proposals.approved(proposal, at_ms=now_ms)
            self._put("proposal.approved", proposal)
        await self._durable.synced()
        return self._view(proposal)

    def _put(self, action: str, proposal: Proposal, *, principal: Principal | None = None) -> None:
        self._rows[proposal.proposal_id] = proposal
        key = _PROPOSAL + proposal.proposal_id.encode()
        self._durable.put(Table.GOVERNANCE, key, msgspec.json.encode(proposal))
        self._audit.record(
            action,
            f"proposal:{proposal.proposal_id}",
            actor=principal.subject if principal else "gateway",
            tenant=principal.tenant if principal else proposal.tenant,
            details={
                "change": proposal.change,
                "status": proposal.status,
                "content": content_digest(proposal),
            },
        )

    def stored(self, release: Release, principal: Principal) -> None:
        """A version of a workflow was put into the store."""
        details = {"sha256": release.sha256}
        self._note("workflow.stored", release.subject, principal=principal, details=details)

    def dropped(self, release: Release, principal: Principal) -> None:
        """A version of a workflow was deleted."""
        details = {"sha256": release.sha256}
        self._note("workflow.deleted", release.subject, principal=principal, details=details)

    def _note(
        self, action: str, subject: str, *, principal: Principal, details: object = None
    ) -> None:
        """One entry of the audit log, in the batch of what it tells."""
        self._audit.record(
            action, subject, actor=principal.subject, tenant=principal.tenant, details=details
        )

    def _view(self, proposal: Proposal) -> ProposalView:
        pending = proposal.status is Status.OPEN
        now_ms = self._clock.now_ms()
        return ProposalView(
            proposal=proposal,
            content=content_digest(proposal),
            missing=missing(proposal, self.policy, now_ms=now_ms) if pending else (),
        )


def _pin(card: Card) -> str:
    return f"component:{card.name}@{card.version}"


def _needs_approval(change: Change, pending: str) -> AcpFailure:
    where = (
        f"proposal {pending} for it is still open: see what it is missing"
        if pending
        else "open one with `acp proposals open`"
    )
    text = f"{change.subject}: {change.kind.value} needs an approved proposal; {where}"
    failure = error(Reason.PERMISSION_DENIED, text)
    details = payload(msgspec.json.encode({"change": change, "proposal_id": pending}))
    return AcpFailure(msgspec.structs.replace(failure, details=details))


def _check_text(place: str, text: str, *, most: int, least: int = 1) -> None:
    if not least <= len(text) <= most:
        raise _failure(Reason.INVALID_REQUEST, f"{place}: write {least} to {most} characters")


def _failure(reason: Reason, message: str) -> AcpFailure:
    return AcpFailure(error(reason, message))
