"""The board of a gateway, wired: its policy out of the settings, and what it is asked about."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model import semver
from acp_spec.model.card import Card
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Component
from gateway.board.audit import AuditLog
from gateway.board.policy import DAY_MS, Bound, Compare, EvidenceRule, Policy, Quorum, Rule
from gateway.board.proposals import ChangeKind, EvidenceKind, Proposal
from gateway.config.board import BoardSettings, RuleSettings
from gateway.config.settings import Settings
from gateway.runtime.board import Board, BoardParts
from gateway.runtime.evidence import EvidenceRequest, Evidences, Plan, Run
from gateway.runtime.measuring import Measured, Measurement, Measurer
from gateway.runtime.principal import LOCAL
from gateway.runtime.registry import Registry
from gateway.runtime.tokens import TokenInfo, TokenRequest, Tokens, subject_of
from gateway.runtime.workflows import Workflows
from gateway.transports.address_guard import (
    GRPC_SCHEMES,
    HTTP_SCHEMES,
    AddressGuard,
    AddressRefused,
    parse_component_url,
)

WORKFLOW_FILE: Final = "workflow.yaml"
MEASURING_DAYS: Final = 1
"""A measurement's own token is revoked when it ends; if the gateway dies first, after a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurable:
    """What measurements are made of. `own_url`: where this gateway serves, once it does."""

    workflows: Workflows
    tokens: Tokens
    own_url: Callable[[], str]


def policy_of(settings: BoardSettings) -> Policy:
    """The policy that the settings write down."""
    return Policy(
        rules={ChangeKind(kind.value): _rule(rule) for kind, rule in settings.rules.items()},
        roles={role: frozenset(subjects) for role, subjects in settings.roles.items()},
    )


def _rule(settings: RuleSettings) -> Rule:
    return Rule(
        required=settings.required,
        quorums=tuple(Quorum(role=r, count=c) for r, c in sorted(settings.approvals.items())),
        evidence=tuple(
            EvidenceRule(
                kind=EvidenceKind(one.kind.value),
                bounds=tuple(map(_bound, one.bounds)),
                max_age_ms=int(one.max_age_days * DAY_MS),
            )
            for one in settings.evidence
        ),
        valid_ms=int(settings.valid_days * DAY_MS),
    )


def _bound(text: str) -> Bound:
    figure, compare, value = text.split(" ")
    return Bound(figure=figure, compare=Compare(compare), value=float(value))


def board_of(
    settings: Settings, parts: BoardParts, *, registry: Registry, workflows: Workflows
) -> Board:
    """The board, asked by registry and workflows from now on; what serves already is known."""
    board = Board(parts, policy_of(settings.board))
    board.remember(registry.list(), workflows.active())

    def is_last(component: Component) -> bool:
        card = component.card
        major = semver.parse(card.version).major
        others = (one.card for one in registry.list() if one.component_id != component.component_id)
        same = any(
            one.name == card.name and semver.parse(one.version).major == major for one in others
        )
        return not same and bool(workflows.naming(card.name))

    def is_served(card: Card) -> bool:
        return registry.has(f"{card.name}@{card.version}")

    board.is_last, board.is_served = is_last, is_served
    workflows.told, workflows.dropped = board.stored, board.dropped
    registry.permit = board.permit_component
    workflows.permit = board.permit_activation
    return board


def audit_tokens(tokens: Tokens, audit: AuditLog) -> None:
    """Every token made and revoked from now on is an entry; its secret is in none."""

    def told(action: str, info: TokenInfo, *, by: str) -> None:
        details = {"scopes": info.scopes, "names": info.names, "label": info.label}
        audit.record(action, subject_of(info), actor=by, tenant=info.tenant, details=details)

    tokens.told = told


def evidences_of(
    settings: Settings, board: Board, *, parts: BoardParts, measurable: Measurable
) -> Evidences:
    """What this gateway can measure for proposals."""
    own_url = measurable.own_url
    return Evidences(
        board,
        _runner(settings, measurable.tokens, workflows=measurable.workflows),
        plans={
            EvidenceKind.CONFORMANCE: _conformance(settings),
            EvidenceKind.LOAD_RUN: _load_run(measurable.workflows, own_url),
            EvidenceKind.REPLAY: _replay(settings.data_dir.resolve(), own_url),
        },
        clock=parts.clock,
        chance=parts.chance,
    )


def _runner(settings: Settings, tokens: Tokens, *, workflows: Workflows) -> Run:
    """Runs a command; one that calls this gateway gets a token of its own while it runs, and may
    run the version that it measures before anybody has approved it."""
    measurer = Measurer(timeout_s=settings.board.evidence_timeout_s)

    async def run(measurement: Measurement) -> Measured:
        if not measurement.scopes:
            return await measurer.run(measurement)
        if not settings.auth_required:
            with _measures(workflows, LOCAL.subject):
                return await measurer.run(measurement)
        request = TokenRequest(
            scopes=measurement.scopes, label="evidence of a proposal", days=MEASURING_DAYS
        )
        made = await tokens.create(request)
        try:
            with _measures(workflows, subject_of(made.info)):
                return await measurer.run(measurement, token=made.token)
        finally:
            await tokens.revoke(made.info.token_id)

    return run


@contextmanager
def _measures(workflows: Workflows, subject: str) -> Generator[None]:
    workflows.measurers.append(subject)
    try:
        yield
    finally:
        workflows.measurers.remove(subject)


def _conformance(settings: Settings) -> Plan:
    guard = AddressGuard(settings.outbound_networks)

    async def plan(proposal: Proposal, request: EvidenceRequest) -> Measurement:
        """The suite against an instance; the same addresses as for a registration are allowed."""
        try:
            target = parse_component_url(request.target, HTTP_SCHEMES | GRPC_SCHEMES)
            await guard.addresses(target)
        except (AddressRefused, OSError) as problem:
            raise AcpFailure(error(Reason.INVALID_REQUEST, f"target: {problem}")) from None
        return Measurement(words=("conformance", "--target", target.url, "--json"))

    return plan


def _load_run(workflows: Workflows, own_url: Callable[[], str]) -> Plan:
    async def plan(proposal: Proposal, request: EvidenceRequest) -> Measurement:
        """A bounded load on the stored version, each component held against its SLA."""
        name, version = _workflow_meant(proposal, request)
        words = (
            *("contract", "check", WORKFLOW_FILE, "--target", own_url(), "--json"),
            *("--input", request.input, "--load", str(request.sessions)),
            *("--seconds", f"{request.seconds:g}"),
        )
        source = workflows.stored(name, version).source
        scopes = ("submit", "operate")
        return Measurement(words=words, files={WORKFLOW_FILE: source}, scopes=scopes)

    return plan


def _replay(data_dir: Path, own_url: Callable[[], str]) -> Plan:
    async def plan(proposal: Proposal, request: EvidenceRequest) -> Measurement:
        """Sessions that this gateway recorded, through the candidate versions."""
        if not request.candidates or not request.workflow:
            text = "workflow, candidates: say which workflow's sessions run on which versions"
            raise AcpFailure(error(Reason.INVALID_REQUEST, text))
        words = (
            *("replay-traffic", "--workflow", request.workflow, "--from", str(data_dir)),
            *("--candidate", ",".join(request.candidates), "--limit", str(request.sessions)),
            *("--gateway", own_url(), "--json"),
        )
        return Measurement(words=words, scopes=("submit", "operate"))

    return plan


def _workflow_meant(proposal: Proposal, request: EvidenceRequest) -> tuple[str, str]:
    """The request's workflow, else the proposal's subject; INVALID_REQUEST when it is neither."""
    subject = proposal.change.subject
    about = subject.removeprefix("workflow:") if subject.startswith("workflow:") else ""
    name, at, version = (request.workflow or about).partition("@")
    if not at:
        text = "workflow: say which, as name@version"
        raise AcpFailure(error(Reason.INVALID_REQUEST, text))
    return name, version
