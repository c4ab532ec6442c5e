"""The board of a gateway, wired: its policy out of the settings, and what it is asked about."""

from collections.abc import Awaitable, Callable
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model import semver
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Component
from gateway.board.policy import DAY_MS, Bound, Compare, EvidenceRule, Policy, Quorum, Rule
from gateway.board.proposals import ChangeKind, EvidenceKind, Proposal
from gateway.config.board import BoardSettings, RuleSettings
from gateway.config.settings import Settings
from gateway.runtime.board import Board, BoardParts
from gateway.runtime.evidence import EvidenceRequest, Evidences
from gateway.runtime.measuring import Measured, Measurer
from gateway.runtime.registry import Registry
from gateway.runtime.tokens import TokenRequest, Tokens
from gateway.runtime.workflows import Workflows
from gateway.transports.address_guard import (
    GRPC_SCHEMES,
    HTTP_SCHEMES,
    AddressGuard,
    AddressRefused,
    parse_component_url,
)

MEASURING_DAYS: Final = 1
"""A measurement's own token is revoked when it ends; if the gateway dies first, after a day."""


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

    board.is_last = is_last
    registry.permit = board.permit_component
    workflows.permit = board.permit_activation
    return board


def evidences_of(
    settings: Settings, board: Board, *, parts: BoardParts, tokens: Tokens
) -> Evidences:
    """What this gateway can measure for proposals."""
    return Evidences(
        board,
        _runner(settings, tokens),
        commands={EvidenceKind.CONFORMANCE: _conformance(settings)},
        clock=parts.clock,
        chance=parts.chance,
    )


def _runner(settings: Settings, tokens: Tokens) -> Callable[[tuple[str, ...]], Awaitable[Measured]]:
    """Runs a command; one that calls this gateway gets a token of its own while it runs."""
    measurer = Measurer(timeout_s=settings.board.evidence_timeout_s)

    async def run(words: tuple[str, ...]) -> Measured:
        if not settings.auth_required:
            return await measurer.run(words)
        request = TokenRequest(
            scopes=("submit",), label="evidence of a proposal", days=MEASURING_DAYS
        )
        made = await tokens.create(request)
        try:
            return await measurer.run(words, token=made.token)
        finally:
            await tokens.revoke(made.info.token_id)

    return run


def _conformance(
    settings: Settings,
) -> Callable[[Proposal, EvidenceRequest], Awaitable[tuple[str, ...]]]:
    guard = AddressGuard(settings.outbound_networks)

    async def command(proposal: Proposal, request: EvidenceRequest) -> tuple[str, ...]:
        """The suite against an instance; the same addresses as for a registration are allowed."""
        try:
            target = parse_component_url(request.target, HTTP_SCHEMES | GRPC_SCHEMES)
            await guard.addresses(target)
        except (AddressRefused, OSError) as problem:
            raise AcpFailure(error(Reason.INVALID_REQUEST, f"target: {problem}")) from None
        return ("conformance", "--target", target.url, "--json")

    return command
