"""Components without a network: targets to pick from, connections that say what a test scripts.

Answers come by loop timers, so a test in virtual time is over at once. `on_send` sees every attempt
at the moment it would leave.
"""

import asyncio
from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import effective_side_effect, error
from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import (
    CancelState,
    Effect,
    HealthStatus,
    OperationStatus,
    SideEffect,
    StepRole,
)
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.payload import payload
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ACCEPTED, STORED, gave, goal, planned
from gateway.runtime.connection import Answer, Outgoing, Sink
from gateway.runtime.targets import Target

Line = Said | None | Callable[[Outgoing], Said | None]


class _Named(msgspec.Struct):
    action: str = ""


def name_of(outgoing: Outgoing) -> str:
    """What is asked for: an action, else the step."""
    return msgspec.json.decode(bytes(outgoing.body), type=_Named).action or outgoing.context.step


USUAL: dict[StepRole, Said] = {
    StepRole.PLAN: planned(goal("a", "read")),
    StepRole.EXECUTE: gave({"done": 1}),
    StepRole.OBSERVE: STORED,
    StepRole.REFLECT: ACCEPTED,
}


class FakeConnection:
    """One instance. `lines`: by action or step; `operations`: what polls find, in turn."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.operations: list[OperationState | AcpFailure] = []
        self.on_send: Callable[[Outgoing], None] = lambda outgoing: None
        self.stops = CancelState.RUNNING
        self.sent: list[Outgoing] = []
        self.cancelled: list[tuple[str, int]] = []
        self.resets: list[tuple[str, int]] = []
        self._open: dict[tuple[str, int], tuple[Outgoing, Sink]] = {}

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        self.on_send(outgoing)
        self.sent.append(outgoing)
        address = (outgoing.context.call_id, outgoing.context.attempt)
        assert address not in self._open, "an attempt is sent once"
        self._open[address] = (outgoing, sink)
        line = self.lines.get(name_of(outgoing), USUAL[outgoing.role])
        said = line(outgoing) if callable(line) else line
        loop = asyncio.get_running_loop()
        timeout_ms = outgoing.context.timeout_ms
        if said is not None and said.after_ms <= timeout_ms:
            loop.call_later(said.after_ms / 1000, self._end, address, _answer(outgoing, said))
            return
        overdue = error(Reason.TIMEOUT, "no answer came in time")
        lost = Answer(
            error=overdue,
            side_effect=effective_side_effect(overdue, outgoing.effect),
            answered=False,
        )
        loop.call_later(timeout_ms / 1000, self._end, address, lost)
        if said is not None and said.after_ms <= timeout_ms + outgoing.late_grace_ms:
            loop.call_later(said.after_ms / 1000, sink, _answer(outgoing, said), True)

    def _end(self, address: tuple[str, int], answer: Answer) -> None:
        found = self._open.pop(address, None)
        if found is not None:
            found[1](answer, False)

    async def describe(self, timeout_ms: int) -> Card:
        raise AssertionError("the sessions read cards from the catalog")

    async def health(self, timeout_ms: int) -> Health:
        return Health(status=HealthStatus.SERVING)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        self.cancelled.append((call_id, attempt))
        if self.stops is CancelState.STOPPED:
            stopped = error(Reason.CANCELLED, "stopped", side_effect=SideEffect.NONE)
            self._end((call_id, attempt), Answer(error=stopped, side_effect=SideEffect.NONE))
        return CancelResponse(state=self.stops)

    def reset(self, call_id: str, attempt: int) -> None:
        self.resets.append((call_id, attempt))
        failure = error(Reason.CANCELLED, "reset", side_effect=SideEffect.UNKNOWN)
        answer = Answer(error=failure, answered=False)
        asyncio.get_running_loop().call_soon(self._end, (call_id, attempt), answer)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        found: OperationState | AcpFailure = OperationState(
            status=OperationStatus.RUNNING, poll_after_ms=100
        )
        if self.operations:
            found = self.operations.pop(0)
        if isinstance(found, AcpFailure):
            raise found
        return found

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        self.cancelled.append((call_id, 0))
        return CancelResponse(state=self.stops, side_effect=SideEffect.NONE)

    async def close(self) -> None:
        return None


def _answer(outgoing: Outgoing, said: Said) -> Answer:
    stated = said.side_effect
    if stated is None and said.error is not None:
        stated = effective_side_effect(said.error, outgoing.effect)
    if stated is None:
        stated = SideEffect.NONE if outgoing.effect is Effect.READ else SideEffect.PERFORMED
    return Answer(
        response=payload(said.response),
        error=said.error,
        side_effect=stated,
        answered=not said.not_sent,
        not_sent=said.not_sent,
        retries_spent=said.retries_spent,
        operation_poll_after_ms=said.poll_after_ms,
    )


class FakeTarget:
    """One instance of a card."""

    def __init__(self, component_id: str, card: Card, connection: FakeConnection) -> None:
        self.component_id = component_id
        self.card = card
        self.digest = f"{card.name}-{card.version}"
        self.connection = connection
        self.signals: Signals | None = None
        self.signals_at_ms = 0


class FakeTargets:
    """`targets.Targets` over a dict; `add` and `remove` tell whoever watches."""

    def __init__(self, *cards: Card) -> None:
        self.connection = FakeConnection()
        self.here: dict[str, FakeTarget] = {}
        self.heard_of: list[str] = []
        self.gone_at_ms: dict[str, int] = {}
        self._watching: list[Callable[[], None]] = []
        for card in cards:
            self.add(card)

    def add(self, card: Card, *, instance: str = "") -> FakeTarget:
        component_id = instance or f"{card.name}-{card.version}-1"
        self.here[component_id] = FakeTarget(component_id, card, self.connection)
        self._tell()
        return self.here[component_id]

    def remove(self, component_id: str) -> None:
        del self.here[component_id]
        self._tell()

    def _tell(self) -> None:
        for callback in self._watching:
            callback()

    def catalog(self) -> Catalog:
        cards = {target.digest: target.card for target in self.here.values()}
        return Catalog(tuple(Offer(card=card, digest=name) for name, card in cards.items()))

    def pick(
        self, pin: str, session_id: str, *, avoid: Callable[[Target], bool] | None = None
    ) -> FakeTarget | None:
        found = [t for t in self.here.values() if f"{t.card.name}@{t.card.version}" == pin]
        free = [target for target in found if avoid is None or not avoid(target)]
        return next(iter(free or found), None)

    def known_at(self, pin: str) -> int | None:
        return self.gone_at_ms.get(pin)

    def instance(self, component_id: str) -> FakeTarget | None:
        return self.here.get(component_id)

    def heard(self, component_id: str) -> None:
        self.heard_of.append(component_id)

    def unreached(self, component_id: str) -> None:
        """Here nobody has a replica to go to."""

    def on_change(self, callback: Callable[[], None]) -> None:
        self._watching.append(callback)


def refusal(reason: Reason) -> AcpFailure:
    failure: AcpError = error(reason, "no")
    return AcpFailure(failure)
