"""The network between one life of the gateway and the components: `Connection` and `Dialer`.

An attempt is one flight: it arrives, the component works, the answer travels back; a fault strikes
one of these. What arrives does so in the world, also when the gateway has died meanwhile; what
comes back is heard by the life that sent it, or by nobody.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

from acp_spec.bindings.errors import error
from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Action, Card, Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import CancelState, HealthStatus, Idempotency, SideEffect, Transport
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from gateway.runtime.connection import Answer, Connection, Outgoing, Sink
from gateway.runtime.registered import Endpoint
from gateway.simulation.component import (
    OF_ROLE,
    RunningOperation,
    action_of,
    error_before_work,
    error_behind_work,
    failed,
    garbled,
    pushed_back,
    with_spent,
)
from gateway.simulation.dice import Dice
from gateway.simulation.town import Instance, Town
from gateway.simulation.virtual_loop import Process

NEVER_MS = 1e15
UP_S, WORK_S = 0.004, 0.020
ASKING_S = 0.004
DAY_MS = 86_400_000

Key = tuple[str, int]
EARLY = {"error before work": error_before_work, "push-back": pushed_back}


@dataclass(slots=True, eq=False)
class Flight:
    """One attempt on its way, until the gateway has its answer, and beyond."""

    outgoing: Outgoing
    action: Action | None
    idempotency: Idempotency
    sink: Sink
    dice: Dice
    fault: str
    has_worked: bool = False
    is_stopped: bool = False
    is_answered: bool = False
    is_told_late: bool = False

    @property
    def key(self) -> Key:
        return self.outgoing.context.call_id, self.outgoing.context.attempt


class SimulatedDialer:
    """Makes connections of one life."""

    def __init__(self, town: Town, life: Process) -> None:
        self._town = town
        self._life = life

    def normal_url(self, url: str, transport: Transport) -> str:
        if not url.startswith("http://"):
            raise ValueError(f"{url!r}: write http://name")
        return url

    def open(self, endpoint: Endpoint) -> Connection:
        return SimulatedConnection(self._town, self._town.places[endpoint.url], life=self._life)


class SimulatedConnection:
    """One instance, as one life of the gateway reaches it."""

    def __init__(self, town: Town, place: Instance, *, life: Process) -> None:
        self._town = town
        self._loop = town.loop
        self._life = life
        self._place = place
        self._flights: dict[Key, Flight] = {}

    # ---- one attempt -------------------------------------------------------------------------

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        town, place = self._town, self._place
        action = action_of(place.card, outgoing)
        idempotency = action.idempotency if action else OF_ROLE[outgoing.role][1]
        town.judge.sent(outgoing, life=self._life, idempotency=idempotency)
        dice, fault = town.draw(outgoing)
        flight = Flight(outgoing, action, idempotency, sink, dice, fault)
        self._flights[flight.key] = flight
        town.judge.flying(place.url, len(self._flights), limits=place.card.limits)
        if not place.is_up:
            fault = "component down"
        if fault:
            self._struck(flight, fault)
        if fault in ("component down", "refused connection"):
            refused = error(Reason.UNAVAILABLE, "connection refused", side_effect=SideEffect.NONE)
            answer = failed(refused, outgoing.effect, answered=False, not_sent=True)
            self._answer_in(ASKING_S / 2, flight, answer=answer)
        else:
            town.judge.arrives(*flight.key)
            self._fly(flight)

    def _struck(self, flight: Flight, fault: str) -> None:
        self._town.judge.struck(flight.outgoing.context.session_id, fault)

    def _fly(self, flight: Flight) -> None:
        """Send it on its way: when it arrives, when its time is over."""
        outgoing, dice, fault = flight.outgoing, flight.dice, flight.fault
        component = self._place.component
        repeated = component.refuses(outgoing, flight.idempotency, now_ms=self._town.now_ms())
        if repeated is not None:
            self._answer_in(ASKING_S, flight, answer=repeated)
            return
        timeout_s = outgoing.context.timeout_ms / 1000.0
        takes_s = dice.latency_s(UP_S) + dice.latency_s(WORK_S)
        if fault == "slow":
            takes_s = timeout_s * 0.9
        elif fault == "late answer":
            takes_s = timeout_s + dice.random() * outgoing.late_grace_ms / 1000.0 * 0.8
        if fault != "lost request":
            component.begins(outgoing, flight.idempotency)
            self._loop.later(takes_s, partial(self._arrive, flight), of=self._loop.world)
        if takes_s >= timeout_s or fault in ("lost request", "lost answer"):
            self._loop.later(timeout_s, partial(self._overdue, flight), of=self._life)

    def _arrive(self, flight: Flight) -> None:
        """In the world: the component has it and works."""
        place = self._place
        if not place.is_up or flight.is_stopped:
            place.component.forgets(flight.outgoing)
            self._broken(flight)
            return
        answer = self._worked(flight)
        if answer is None:
            self._broken(flight)
        elif flight.fault != "lost answer":
            self._heard(flight, answer)

    def _worked(self, flight: Flight) -> Answer | None:
        """What the component did and says; None: the connection broke."""
        outgoing, dice, fault = flight.outgoing, flight.dice, flight.fault
        component = self._place.component
        early = EARLY.get(fault)
        if early is not None or fault == "reset before work":
            component.forgets(outgoing)
            return failed(early(dice), outgoing.effect) if early else None
        flight.has_worked = True
        answer = component.works(outgoing, flight.action, dice=dice)
        if fault == "error after work":
            answer = failed(error_behind_work(dice), outgoing.effect)
        elif fault == "garbage":
            answer = garbled(answer, dice)
        elif fault == "retries spent":
            answer = with_spent(answer, dice, lent=outgoing.context.retry_budget)
        if answer.operation_poll_after_ms is not None:
            self._begin_operation(flight)
        ttl_ms = flight.action.idempotency_ttl_ms if flight.action else DAY_MS
        component.keeps(outgoing, answer, ttl_ms=ttl_ms, now_ms=self._town.now_ms())
        return None if fault in ("reset after work", "stream cut") else answer

    def _heard(self, flight: Flight, answer: Answer) -> None:
        """The answer is there: in time, or late, or twice."""
        if flight.is_answered:
            self._tell_late(flight, answer)
            return
        self._tell(flight, answer)
        if flight.fault == "duplicate answer":
            self._loop.later(0.003, partial(self._tell_late, flight, answer), of=self._life)
        elif flight.fault == "duplicate request" and flight.idempotency is not Idempotency.NONE:
            self._again(flight)

    def _again(self, flight: Flight) -> None:
        """The same bytes arrive twice; whoever keeps outcomes must not do it twice."""
        component, now_ms = self._place.component, self._town.now_ms()
        if component.refuses(flight.outgoing, flight.idempotency, now_ms=now_ms) is None:
            component.works(flight.outgoing, flight.action, dice=flight.dice)

    def _tell(self, flight: Flight, answer: Answer) -> None:
        """Call the sink in the life that sent it, soon, and once."""
        if not flight.is_answered:
            flight.is_answered = True
            place, judge = self._place.component_id, self._town.judge
            judge.answered(flight.outgoing, place, is_failure=answer.error is not None)
            del self._flights[flight.key]
            self._loop.soon_in(self._life, flight.sink, answer, False)

    def _tell_late(self, flight: Flight, answer: Answer) -> None:
        if not flight.is_told_late:
            flight.is_told_late = True
            self._loop.soon_in(self._life, flight.sink, answer, True)

    def _answer_in(self, delay_s: float, flight: Flight, *, answer: Answer) -> None:
        self._loop.later(delay_s, partial(self._tell, flight, answer), of=self._life)

    def _overdue(self, flight: Flight) -> None:
        overdue = error(Reason.TIMEOUT, "no answer came in time")
        self._tell(flight, failed(overdue, flight.outgoing.effect, answered=False))

    def _broken(self, flight: Flight) -> None:
        broken = error(Reason.UNAVAILABLE, "the connection broke")
        self._tell(flight, failed(broken, flight.outgoing.effect, answered=False))

    # ---- questions ---------------------------------------------------------------------------

    async def describe(self, timeout_ms: int) -> Card:
        await self._asked()
        return self._place.card

    async def health(self, timeout_ms: int) -> Health:
        await self._asked()
        return Health(status=HealthStatus.SERVING, signals=Signals(inflight=len(self._flights)))

    async def _asked(self) -> None:
        await asyncio.sleep(ASKING_S)
        if not self._place.is_up:
            raise AcpFailure(error(Reason.UNAVAILABLE, f"nobody at {self._place.url}"))

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        if self._town.ignores_cancels:
            flight = self._flights.get((call_id, attempt))
            if flight is not None:
                self._struck(flight, "cancels ignored")
            await asyncio.sleep(timeout_ms / 1000.0)
            raise AcpFailure(error(Reason.TIMEOUT, "no answer to the cancel"))
        await self._asked()
        flight = self._flights.get((call_id, attempt))
        if flight is None:
            return CancelResponse(state=CancelState.UNKNOWN_CALL)
        if flight.has_worked:
            return CancelResponse(state=CancelState.FINISHED)
        if flight.fault == "lost request" or not flight.dice.happens(0.6):
            return CancelResponse(state=CancelState.RUNNING)
        flight.is_stopped = True
        self._place.component.forgets(flight.outgoing)
        stopped = error(Reason.CANCELLED, "stopped", side_effect=SideEffect.NONE)
        self._tell(flight, failed(stopped, flight.outgoing.effect))
        return CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.NONE)

    def reset(self, call_id: str, attempt: int) -> None:
        flight = self._flights.get((call_id, attempt))
        if flight is not None:
            failure = error(Reason.CANCELLED, "reset", side_effect=SideEffect.UNKNOWN)
            self._tell(flight, failed(failure, flight.outgoing.effect, answered=False))

    # ---- operations --------------------------------------------------------------------------

    def _begin_operation(self, flight: Flight) -> None:
        town, dice, context = self._town, flight.dice, flight.outgoing.context
        fault = town.faults.of_operation(dice)
        if context.callback is None:
            fault = ""  # made while nobody had declared the action: it may run for a day
        if fault:
            self._struck(flight, fault)
        takes_ms = 100.0 + dice.random() * 1_500.0
        over_at_ms = NEVER_MS if fault == "operation silent" else town.now_ms() + takes_ms
        token = context.callback.token if context.callback else ""
        operation = RunningOperation(context.call_id, token, over_at_ms, fault)
        self._place.component.operations[context.call_id] = operation
        if not fault and token and dice.happens(0.5):
            later = partial(self._call_back, operation)
            town.loop.later(takes_ms / 1000.0, later, of=town.loop.world)

    def _call_back(self, operation: RunningOperation) -> None:
        if not operation.is_stopped:
            self._town.call_back(operation.call_id, operation.token)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        await self._asked()
        found = self._place.component.operation_state(call_id, self._town.now_ms())
        if found is None:
            await asyncio.sleep(timeout_ms / 1000.0)
            raise AcpFailure(error(Reason.TIMEOUT, "no answer to the poll"))
        if isinstance(found, AcpError):
            raise AcpFailure(found)
        return found

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        await self._asked()
        running = self._place.component.operations.get(call_id)
        if running is None:
            return CancelResponse(state=CancelState.UNKNOWN_CALL)
        if self._town.now_ms() >= running.over_at_ms:
            return CancelResponse(state=CancelState.FINISHED)
        running.is_stopped = True
        return CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.UNKNOWN)

    async def close(self) -> None:
        for flight in tuple(self._flights.values()):
            self._broken(flight)
