"""The one port to a component, which HTTP, gRPC and attach implement (in `transports`).

A connection makes one attempt and reports it exactly once; it has no policy: no retry, no queue. It
enforces the attempt's time and keeps listening for `late_grace_ms` after it, because a late answer
may still tell what was done (SPEC 9.3). The raw response text is handed on byte for byte.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from acp_spec.model.calls import CancelResponse, LlmCall, OperationState, Usage
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Context
from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt to send. `body` is the request's JSON object without `context`.

    `fresh_connection`: the action is not idempotent, so only a connection idle for less than a
    second, or a new one, may carry it (SPEC section 5).
    """

    context: Context
    role: StepRole
    effect: Effect
    body: Payload
    fresh_connection: bool = False
    late_grace_ms: int = 2_000
    auth: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of an attempt: `response` text, or `error`.

    `answered`: the peer itself said so (an ACP response or error). `not_sent`: proven that nothing
    reached the peer. `operation_poll_after_ms`: accepted as a long operation. `service_ms`: from
    the moment it was written, so without any waiting in the gateway; None: it never was.
    """

    response: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    answered: bool = True
    not_sent: bool = False
    retries_spent: int = 0
    usage: Usage | None = None
    llm_calls: tuple[LlmCall, ...] = ()
    served_version: str = ""
    operation_poll_after_ms: int | None = None
    service_ms: int | None = None


Sink = Callable[[Answer, bool], None]
"""`sink(answer, late)`: once with late=False, and at most once more with late=True."""


class Connection(Protocol):
    """One component instance, reachable. All methods are called on the event loop's thread."""

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        """Start the attempt; `sink` is called later on the loop, never inside `send`."""

    async def describe(self, timeout_ms: int) -> Card:
        """The component's card, checked; raises AcpFailure."""

    async def health(self, timeout_ms: int) -> Health:
        """Its health and load figures; raises AcpFailure."""

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        """Ask to stop a call (attempt 0 = all); raises AcpFailure when nobody answers."""

    def reset(self, call_id: str, attempt: int) -> None:
        """Give up on an attempt at once: its sink gets UNKNOWN if it has not been called yet."""

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        """Poll a long operation; raises AcpFailure (reason NOT_FOUND when it is unknown)."""

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        """Ask to stop a long operation."""

    async def close(self) -> None:
        """Close every socket; attempts still open end as UNKNOWN."""
