"""The component card: what a component says it can do (SPEC section 4).

Absent values read as the careful choice: effect WRITE, idempotency NONE.
"""

from typing import Annotated

import msgspec

from acp_spec.model.bounds import Count, NonEmpty
from acp_spec.model.context import Signals
from acp_spec.model.enums import Effect, HealthStatus, Idempotency, Kind, Role
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.sandbox import Sandbox

IDEMPOTENCY_TTL_MS_DEFAULT = 24 * 60 * 60 * 1000


class Example(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair of arguments and output; `safe` = may be really sent by a test."""

    arguments: Payload
    output: Payload = ABSENT
    safe: bool = False


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: NonEmpty
    description: str = ""
    input_schema: Payload = ABSENT
    output_schema: Payload = ABSENT
    effect: Effect = Effect.WRITE
    idempotency: Idempotency = Idempotency.NONE
    idempotency_ttl_ms: Count = IDEMPOTENCY_TTL_MS_DEFAULT
    timeout_ms: Count = 0
    operation_timeout_ms: Count = 0
    semantics: Payload = ABSENT
    examples: tuple[Example, ...] = ()
    sandbox: Sandbox | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the component can take; 0 = not stated."""

    max_request_bytes: Count = 0
    max_concurrency: Count = 0
    max_rate_per_s: float = 0.0


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: NonEmpty
    version: NonEmpty
    acp_versions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("1.0",)
    roles: tuple[Role, ...] = ()
    actions: tuple[Action, ...] = ()
    limits: Limits = Limits()
    docs_url: str = ""
    kind: Kind = Kind.TOOL

    def action(self, name: str) -> Action | None:
        """The action of that name, or None when the card does not declare it."""
        return next((action for action in self.actions if action.name == name), None)


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: HealthStatus
    signals: Signals | None = None


class ComponentRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who really answered: version and card digest, stated in a response."""

    version: str = ""
    digest: str = ""
