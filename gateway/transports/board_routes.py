"""Proposals and the audit log over HTTP: `/v1/proposals`, `/v1/audit`. The gateway's own.

Components and workflows belong to the whole gateway, and so do proposals: every operator sees
them. Audit entries are seen by the tenant whose member acted.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import PREFER
from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model.errors import AcpFailure, Reason
from gateway.board.audit import AuditVerdict, Entry, Walk
from gateway.board.proposals import Status
from gateway.runtime.board import ProposalPage, ProposalRequest, ProposalView, VoteRequest
from gateway.runtime.evidence import EvidenceRequest
from gateway.transports.http_request import HttpRequest, count, preferred_wait_s, query_values
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import Caller, Done, Operation

AUDIT_PAGE_MAX: Final = 500
_PROPOSALS, _ONE = "/v1/proposals", "/v1/proposals/{proposal_id}"


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries oldest first; `head` is the newest number and digest, to be noted elsewhere."""

    entries: tuple[Entry, ...]
    head: tuple[int, str]


class ProposalList(msgspec.Struct, frozen=True, kw_only=True):
    """Which proposals; all without a status."""

    status: str = ""


class ProposalId(msgspec.Struct, frozen=True, kw_only=True):
    proposal_id: str


class OpenProposal(msgspec.Struct, frozen=True, kw_only=True):
    request: ProposalRequest


class GiveVote(msgspec.Struct, frozen=True, kw_only=True):
    proposal_id: str
    vote: VoteRequest


class AskEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """`wait_s`: from `Prefer: wait=N`."""

    proposal_id: str
    request: EvidenceRequest
    wait_s: int = 0


class NotedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A digest that somebody noted earlier; empty: none."""

    head: str = ""


class AuditRange(msgspec.Struct, frozen=True, kw_only=True):
    """The entries beyond number `after`."""

    after: int = 0
    limit: int = 0


BOARD_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="open_proposal",
        method="POST",
        path=_PROPOSALS,
        request=ProposalRequest,
        response=ProposalView,
        status=201,
        scope="operate",
    ),
    Route(
        name="list_proposals",
        method="GET",
        path=_PROPOSALS,
        response=ProposalPage,
        query=("status",),
        scope="operate",
    ),
    Route(name="get_proposal", method="GET", path=_ONE, response=ProposalView, scope="operate"),
    Route(
        name="ask_evidence",
        method="POST",
        path=f"{_ONE}/evidence",
        request=EvidenceRequest,
        response=ProposalView,
        status=202,
        scope="operate",
    ),
    Route(
        name="vote_proposal",
        method="POST",
        path=f"{_ONE}/votes",
        request=VoteRequest,
        response=ProposalView,
        scope="operate",
    ),
    Route(
        name="withdraw_proposal",
        method="POST",
        path=f"{_ONE}/withdraw",
        response=ProposalView,
        scope="operate",
    ),
    Route(
        name="list_audit",
        method="GET",
        path="/v1/audit",
        response=AuditPage,
        query=("after", "limit"),
        scope="operate",
    ),
    Route(
        name="verify_audit",
        method="GET",
        path="/v1/audit/verdict",
        response=AuditVerdict,
        query=("head",),
        scope="admin",
    ),
)


async def open_proposal(caller: Caller, asked: OpenProposal) -> Done:
    view = await caller.services.board.propose(asked.request, caller.principal)
    return Done(view, location=f"{_PROPOSALS}/{view.proposal.proposal_id}")


async def list_proposals(caller: Caller, asked: ProposalList) -> Done:
    try:
        status = Status(asked.status) if asked.status else None
    except ValueError:
        known = ", ".join(Status)
        message = f"query status: {asked.status[:50]!r} is none of {known}"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message)) from None
    return Done(ProposalPage(proposals=caller.services.board.list(status=status)))


async def get_proposal(caller: Caller, asked: ProposalId) -> Done:
    return Done(caller.services.board.get(asked.proposal_id))


async def ask_evidence(caller: Caller, asked: AskEvidence) -> Done:
    return Done(
        await caller.services.evidences.start(
            asked.proposal_id,
            asked.request,
            principal=caller.principal,
            wait_s=asked.wait_s,
        )
    )


async def vote_proposal(caller: Caller, asked: GiveVote) -> Done:
    return Done(
        await caller.services.board.vote(asked.proposal_id, asked.vote, principal=caller.principal)
    )


async def withdraw_proposal(caller: Caller, asked: ProposalId) -> Done:
    return Done(await caller.services.board.withdraw(asked.proposal_id, principal=caller.principal))


async def list_audit(caller: Caller, asked: AuditRange) -> Done:
    limit = min(asked.limit or AUDIT_PAGE_MAX, AUDIT_PAGE_MAX)
    log, tenant = caller.services.audit, caller.principal.tenant
    found: list[Entry] = []
    async for entry in log.in_turns(after=asked.after):
        if entry.tenant == tenant:
            found.append(entry)
            if len(found) >= limit:
                break
    return Done(AuditPage(entries=tuple(found), head=log.head))


async def verify_audit(caller: Caller, asked: NotedHead) -> Done:
    log = caller.services.audit
    await log.synced()
    walk = Walk(asked.head)
    async for entry in log.in_turns():
        walk.add(entry)
    return Done(walk.verdict())


def _open(request: HttpRequest, limits: HttpLimits) -> OpenProposal:
    body = json.decode_request(ProposalRequest, request.body, max_bytes=limits.body_bytes)
    return OpenProposal(request=body)


def _list(request: HttpRequest, limits: HttpLimits) -> ProposalList:
    values = query_values(request.query, ("status",)) if request.query else {}
    return ProposalList(status=values.get("status", ""))


def _one(request: HttpRequest, limits: HttpLimits) -> ProposalId:
    return ProposalId(proposal_id=request.params[0])


def _vote(request: HttpRequest, limits: HttpLimits) -> GiveVote:
    body = json.decode_request(VoteRequest, request.body, max_bytes=limits.body_bytes)
    return GiveVote(proposal_id=request.params[0], vote=body)


def _evidence(request: HttpRequest, limits: HttpLimits) -> AskEvidence:
    body = json.decode_request(EvidenceRequest, request.body, max_bytes=limits.body_bytes)
    wait_s = int(preferred_wait_s(request.header(PREFER), limits.wait_s))
    return AskEvidence(proposal_id=request.params[0], request=body, wait_s=wait_s)


def _audit(request: HttpRequest, limits: HttpLimits) -> AuditRange:
    values = query_values(request.query, ("after", "limit")) if request.query else {}
    return AuditRange(
        after=count(values.get("after", ""), "query after"),
        limit=count(values.get("limit", ""), "query limit"),
    )


def _noted(request: HttpRequest, limits: HttpLimits) -> NotedHead:
    values = query_values(request.query, ("head",)) if request.query else {}
    return NotedHead(head=values.get("head", ""))


BOARD_OPERATIONS: Final[Mapping[str, Operation]] = {
    "open_proposal": open_proposal,
    "list_proposals": list_proposals,
    "get_proposal": get_proposal,
    "ask_evidence": ask_evidence,
    "vote_proposal": vote_proposal,
    "withdraw_proposal": withdraw_proposal,
    "list_audit": list_audit,
    "verify_audit": verify_audit,
}
BOARD_BUILDERS: Final[Mapping[str, Builder]] = {
    "open_proposal": _open,
    "list_proposals": _list,
    "get_proposal": _one,
    "ask_evidence": _evidence,
    "vote_proposal": _vote,
    "withdraw_proposal": _one,
    "list_audit": _audit,
    "verify_audit": _noted,
}
