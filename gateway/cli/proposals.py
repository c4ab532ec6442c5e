"""`acp proposals` and `acp audit`: changes that need approval, and who changed what.

A vote is for what its voter saw: `vote` reads the proposal, shows it, and votes for that content.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting
from gateway.cli.options import GATEWAY_URL_DEFAULT, DataDir, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.board.audit import AuditVerdict
    from gateway.runtime.board import ProposalView

WAIT_S = 60
"""A gateway holds a request at most so long (http.wait_max_ms); measuring goes on after it."""

app = typer.Typer(help="Changes that need approval: open, measure, vote.", no_args_is_help=True)
audit = typer.Typer(help="Who changed what, chained by hash.", no_args_is_help=True)

ProposalId = Annotated[str, typer.Argument(help="Its id, as `acp proposals list` shows it.")]


@app.command("open")
def open_proposal(
    kind: Annotated[
        str, typer.Option(help="MAJOR_VERSION, NEW_COMPONENT, SLA_CHANGE or RETIREMENT.")
    ],
    subject: Annotated[str, typer.Option(help="component:name@major, or workflow:name@version.")],
    title: Annotated[str, typer.Option(help="One line that says what and why.")],
    rationale: Annotated[str, typer.Option(help="The reasons at length.")] = "",
    digest: Annotated[str, typer.Option(help="SHA-256 that the approval is bound to.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Propose a change; the answer says what it still needs."""
    from acp_spec.codec.json import decode_request
    from gateway.runtime.board import ProposalRequest, ProposalView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        import msgspec

        stated = {
            "change": {"kind": kind.upper(), "subject": subject, "digest": digest},
            "title": title,
            "rationale": rationale,
        }
        text = msgspec.json.encode(stated)
        request = decode_request(ProposalRequest, text, max_bytes=len(text))
        view = remote.operate(ProposalView, "POST /v1/proposals", body=request)
    _show(out, view)


@app.command("list")
def list_proposals(
    status: Annotated[str, typer.Option(help="OPEN, APPROVED, APPLIED, REJECTED ...")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Proposals, newest first."""
    from acp_spec.model.times import rfc3339
    from gateway.runtime.board import ProposalPage

    out = Output(json=as_json)
    query = {"status": status.upper()} if status else None
    with connected(out, gateway, token=token) as remote:
        page = remote.operate(ProposalPage, "GET /v1/proposals", query=query)
    out.rows(
        page.proposals,
        columns=("proposal_id", "status", "kind", "subject", "title", "opened"),
        cells=lambda one: (
            one.proposal.proposal_id,
            one.proposal.status.value,
            one.proposal.change.kind.value,
            one.proposal.change.subject,
            one.proposal.title,
            rfc3339(one.proposal.opened_at_ms),
        ),
    )


@app.command("show")
def show(
    proposal_id: ProposalId,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """One proposal with its figures, its votes, and what is missing."""
    out = Output(json=as_json)
    _show(out, _read(out, proposal_id, gateway=gateway, token=token))


@app.command("evidence")
def evidence(
    proposal_id: ProposalId,
    kind: Annotated[str, typer.Option(help="CONFORMANCE, LOAD_RUN or REPLAY.")],
    target: Annotated[str, typer.Option(help="CONFORMANCE: URL of the instance.")] = "",
    workflow: Annotated[
        str, typer.Option(help="LOAD_RUN and REPLAY: name@version; the proposal's own if unsaid.")
    ] = "",
    given: Annotated[str, typer.Option("--input", help="LOAD_RUN: input, JSON.")] = "null",
    sessions: Annotated[int, typer.Option(help="LOAD_RUN: at once. REPLAY: so many at most.")] = 4,
    seconds: Annotated[float, typer.Option(help="LOAD_RUN: how long.")] = 10,
    candidate: Annotated[
        list[str] | None, typer.Option(help="REPLAY: component@version; repeatable.")
    ] = None,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Have the gateway measure, and wait for the figures; `show` tells them later too."""
    import msgspec

    from acp_spec.codec.json import decode_request
    from gateway.cli.remote import place
    from gateway.runtime.board import ProposalView
    from gateway.runtime.evidence import EvidenceRequest

    out = Output(json=as_json)
    stated = {
        "kind": kind.upper(),
        "target": target,
        "workflow": workflow,
        "input": given,
        "sessions": sessions,
        "seconds": seconds,
        "candidates": candidate or [],
    }
    with connected(out, gateway, token=token) as remote:
        text = msgspec.json.encode(stated)
        request = decode_request(EvidenceRequest, text, max_bytes=len(text))
        one = place("/v1/proposals/{}", proposal_id)
        before = remote.operate(ProposalView, f"GET {one}")
        view = remote.post_and_wait(ProposalView, f"{one}/evidence", body=request, wait_s=WAIT_S)
    if len(view.proposal.evidence) == len(before.proposal.evidence):
        out.note("still being measured: `acp proposals show` tells when the figures are there")
    _show(out, view)


@app.command("vote")
def vote(
    proposal_id: ProposalId,
    role: Annotated[str, typer.Option(help="The role you vote in.")],
    reject: Annotated[bool, typer.Option("--reject", help="Against it: ends it.")] = False,
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Agree (or reject) in a role, for the proposal as it stands now."""
    from gateway.cli.remote import place
    from gateway.runtime.board import ProposalView, VoteRequest

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        path = place("/v1/proposals/{}", proposal_id)
        seen = remote.operate(ProposalView, f"GET {path}")
        request = VoteRequest(role=role, agrees=not reject, content=seen.content, comment=comment)
        view = remote.operate(ProposalView, f"POST {path}/votes", body=request)
    _show(out, view)


@app.command("withdraw")
def withdraw(
    proposal_id: ProposalId,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Take your own proposal back."""
    from gateway.cli.remote import place
    from gateway.runtime.board import ProposalView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        view = remote.operate(ProposalView, place("POST /v1/proposals/{}/withdraw", proposal_id))
    _show(out, view)


@audit.command("list")
def list_audit(
    after: Annotated[int, typer.Option(help="Only entries beyond this number.")] = 0,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Entries of the audit log, oldest first, one page."""
    from acp_spec.model.times import rfc3339
    from gateway.transports.board_routes import AuditPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.operate(AuditPage, "GET /v1/audit", query={"after": str(after)})
    out.rows(
        page.entries,
        columns=("number", "time", "actor", "action", "subject"),
        cells=lambda one: (
            str(one.number),
            rfc3339(one.at_ms),
            one.actor,
            one.action,
            one.subject,
        ),
    )


@audit.command("verify")
def verify(
    data_dir: DataDir = None,
    head: Annotated[
        str, typer.Option(help="Digest noted earlier; it must still be in the chain.")
    ] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Follow the chain from its first entry; exit 1 if it is broken anywhere."""
    out = Output(json=as_json)
    verdict = _verdict(out, data_dir, head=head, gateway=gateway, token=token)
    text = f"{verdict.entries} entries, head {verdict.head}"
    if verdict.whole:
        out.value(verdict, text=f"the audit log is whole: {text}")
        return
    out.value(verdict, text=f"BROKEN at entry {verdict.number}: {verdict.message} ({text})")
    raise typer.Exit(Exit.FAILED)


def _verdict(
    out: Output, data_dir: Path | None, *, head: str, gateway: str, token: str
) -> "AuditVerdict":
    from gateway.board.audit import AuditVerdict

    if data_dir is None:
        with connected(out, gateway, token=token) as remote:
            query = {"head": head} if head else None
            return remote.operate(AuditVerdict, "GET /v1/audit/verdict", query=query)
    from gateway.board.audit import read_entries, verdict_of
    from gateway.cli.offline import opened

    with reporting(out), opened(data_dir, read_only=True) as store:
        return verdict_of(read_entries(store), head=head)


def _read(out: Output, proposal_id: str, *, gateway: str, token: str) -> "ProposalView":
    from gateway.cli.remote import place
    from gateway.runtime.board import ProposalView

    with connected(out, gateway, token=token) as remote:
        return remote.operate(ProposalView, place("GET /v1/proposals/{}", proposal_id))


def _show(out: Output, view: "ProposalView") -> None:
    one = view.proposal
    lines = [
        f"{one.proposal_id}  {one.status.value}  {one.change.kind.value}  {one.change.subject}",
        f"  {one.title}  (by {one.proposer})",
    ]
    for found in one.evidence:
        shown = ", ".join(f"{name}={value:g}" for name, value in sorted(found.figures.items()))
        lines.append(f"  evidence {found.kind.value}, exit {found.exit_code}: {shown[:300]}")
    for given in one.votes:
        word = "agrees" if given.agrees else "rejects"
        counts = "" if given.content == view.content else " (for an earlier content)"
        lines.append(f"  {given.by} {word} as {given.role}{counts} {given.comment}".rstrip())
    lines += [f"  missing: {sentence}" for sentence in view.missing]
    out.value(view, text="\n".join(lines))
