"""What may be admitted to the registry: checks that need nothing but the request, card and caller.

Each check raises AcpFailure with what to change; none of them changes anything.
"""

from collections.abc import Container
from typing import Final

import msgspec

from acp_spec.bindings.errors import ERRORS, error
from acp_spec.bindings.fields import SUPPORTED_VERSIONS
from acp_spec.model.card import Card
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.card_check import card_problems, negotiated_version
from gateway.runtime.principal import Principal, Scope

LABELS_MAX: Final = 32
LABEL_CHARACTERS_MAX: Final = 128


class RegistryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the registry, each with the reason for its default.

    `credentials` are the names that a registration's `auth` may have.
    """

    default_lease_s: int = 15
    max_lease_s: int = 86_400
    describe_timeout_ms: int = 5_000  # a JVM that answers its first request takes seconds
    expired_grace_ms: int = 600_000  # a host that reboots is back in ten minutes
    closing_grace_ms: int = 30_000  # calls of a removed instance may end: a default session
    unreachable_after: int = 3  # two lost probes happen, the third tells
    instances_max: int = 5_000  # each keeps its card in memory and a probe on the wire
    credentials: frozenset[str] = frozenset()


def granted_lease_s(wanted: int, limits: RegistryLimits) -> int:
    """The lease that a request for `wanted` seconds gets."""
    if wanted > limits.max_lease_s:
        text = f"lease_seconds: {wanted} is over {limits.max_lease_s}"
        raise failure(Reason.INVALID_REQUEST, text)
    return wanted or limits.default_lease_s


def check_labels(labels: dict[str, str]) -> None:
    longest = max((len(text) for pair in labels.items() for text in pair), default=0)
    if len(labels) > LABELS_MAX or longest > LABEL_CHARACTERS_MAX:
        text = f"labels: at most {LABELS_MAX}, each text at most {LABEL_CHARACTERS_MAX} characters"
        raise failure(Reason.INVALID_REQUEST, text)


def check_auth(auth: str, principal: Principal, *, credentials: Container[str]) -> None:
    """Whoever names a credential has it sent to a URL of their choice: operators only."""
    if not auth:
        return
    if not principal.may(Scope.OPERATE):
        text = f"auth: only a token with scope {Scope.OPERATE.value!r} may name a credential"
        raise failure(Reason.PERMISSION_DENIED, text)
    if auth not in credentials:
        text = f"auth: there is no credential {auth!r}: name it in outbound.credentials"
        raise failure(Reason.INVALID_REQUEST, text)


def check_card(card: Card, principal: Principal) -> None:
    """PERMISSION_DENIED for a foreign name, VERSION_UNSUPPORTED, or CONTRACT_VIOLATION."""
    if not principal.may_serve(card.name):
        text = f"this token may not serve components named {card.name[:100]!r}"
        raise failure(Reason.PERMISSION_DENIED, text)
    if not negotiated_version(card):
        spoken, known = ", ".join(card.acp_versions[:10]), ", ".join(SUPPORTED_VERSIONS)
        text = f"the component speaks ACP {spoken[:100]}; this gateway speaks {known}"
        raise failure(Reason.VERSION_UNSUPPORTED, text)
    problems = card_problems(card)
    if problems:
        text = "the component's card is not valid: " + "; ".join(problems)
        raise AcpFailure(
            error(
                Reason.CONTRACT_VIOLATION,
                text,
                side_effect=SideEffect.NONE,
                boundary=Boundary.COMPONENT,
            )
        )


def failure(reason: Reason, message: str) -> AcpFailure:
    """A refusal of the registry's own: never a component's, whatever the reason."""
    ours = Boundary.GATEWAY if ERRORS[reason].boundary is Boundary.COMPONENT else None
    return AcpFailure(error(reason, message, boundary=ours))
