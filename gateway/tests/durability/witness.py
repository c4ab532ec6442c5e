"""A component inside the test that asks, at the moment it is called: what is on disk now?

It answers within milliseconds, faster than the disk of these tests.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from acp_spec.bindings.errors import error
from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Action, Card, Health, Limits
from acp_spec.model.enums import (
    CancelState,
    Effect,
    HealthStatus,
    Idempotency,
    OperationStatus,
    Role,
    SideEffect,
    StepRole,
)
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from gateway.runtime.connection import Answer, Outgoing, Sink

PLAN = b'{"plan":{"root_goal":"g","sub_goals":[]},"output":"planned"}'
RESPONSES = {
    StepRole.PLAN: PLAN,
    StepRole.EXECUTE: b'{"output":{"done":true},"side_effect":"PERFORMED"}',
    StepRole.OBSERVE: b'{"stored":1}',
    StepRole.REFLECT: b'{"verdict":"ACCEPT","output":"accepted"}',
}

CARD = Card(
    name="witness",
    version="1.0.0",
    roles=tuple(Role),
    limits=Limits(max_concurrency=64),
    actions=(
        Action(name="look", effect=Effect.READ, idempotency=Idempotency.NATURAL),
        Action(name="keyed", idempotency=Idempotency.BY_KEY),
        Action(name="once", idempotency=Idempotency.NONE),
        Action(name="hang", effect=Effect.READ, idempotency=Idempotency.NATURAL),
        Action(name="long", idempotency=Idempotency.BY_KEY, operation_timeout_ms=60_000),
    ),
)

ANSWER_S = 0.004
"""Several answers come while one sync runs, so that some are on disk and later ones are not."""

Look = Callable[[Outgoing], None]
"""Called with each attempt as it leaves."""


@dataclass
class Witness:
    """A `Connection`. `look` is the question; what it was sent is kept in `sent`."""

    look: Look = lambda outgoing: None
    sent: list[Outgoing] = field(default_factory=list)
    sinks: dict[str, Sink] = field(default_factory=dict)

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        self.sent.append(outgoing)
        self.look(outgoing)
        loop = asyncio.get_running_loop()
        if b'"action":"hang"' in bytes(outgoing.body):
            self.sinks[outgoing.context.call_id] = sink
        else:
            loop.call_later(ANSWER_S, sink, _answer(outgoing), False)

    def reset(self, call_id: str, attempt: int) -> None:
        sink = self.sinks.pop(call_id, None)
        if sink is not None:
            lost = error(Reason.CANCELLED, "reset", side_effect=SideEffect.UNKNOWN)
            answer = Answer(error=lost, answered=False)
            asyncio.get_running_loop().call_soon(sink, answer, False)

    async def describe(self, timeout_ms: int) -> Card:
        return CARD

    async def health(self, timeout_ms: int) -> Health:
        return Health(status=HealthStatus.SERVING)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        self.reset(call_id, attempt)
        return CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.NONE)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        return OperationState(status=OperationStatus.RUNNING, poll_after_ms=60_000)

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        raise AcpFailure(error(Reason.UNAVAILABLE, "not asked in these tests"))

    async def close(self) -> None:
        """There is no socket."""


def _answer(outgoing: Outgoing) -> Answer:
    if b'"action":"long"' in bytes(outgoing.body):
        return Answer(operation_poll_after_ms=60_000)
    side_effect = SideEffect.NONE if outgoing.effect is Effect.READ else SideEffect.PERFORMED
    return Answer(response=payload(RESPONSES[outgoing.role]), side_effect=side_effect)
