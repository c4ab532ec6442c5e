"""Before the journal: whether a call's next attempt may start, as the event that says so.

`admit` makes the event, and nothing is sent here. What the row takes for an attempt is kept in
`permits` under its address until the attempt has ended. An attempt that must wait has no event of
its own until it is asked again.
"""

import asyncio
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from acp_spec.model.context import Signals
from acp_spec.model.enums import Boundary, StepType
from acp_spec.model.errors import AcpError
from gateway.engine import hedges, recovery
from gateway.engine.around import Around
from gateway.engine.events import AnyEvent, AttemptEnded, AttemptStarted, Deferred, Refused
from gateway.engine.sla_samples import BAR
from gateway.engine.states import AttemptState, CallState, SessionState
from gateway.governance import breaker, budget, deadline, retry_tokens, sandbox_demands
from gateway.governance.rules import Rules
from gateway.governance.verdicts import Admit, Defer, Refuse
from gateway.governance.wish import Permit, Wish
from gateway.runtime.absence import Absence, Found
from gateway.runtime.claims import claim, still_waits, tell_demand
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Driver
from gateway.runtime.hedging import Hedging
from gateway.runtime.live import Live
from gateway.runtime.open_permits import OpenPermits
from gateway.runtime.queueing import Admission, Claim, Waiting
from gateway.runtime.sla_watch import AskBar, no_bar
from gateway.runtime.targets import Target

RulesFor = Callable[[Target], Rules]
"""What holds for a target now."""


class SignalsOf(Protocol):
    """The load figures that ride in an attempt's context."""

    def __call__(
        self, state: SessionState, call: CallState, *, target: Target
    ) -> tuple[Signals, ...]: ...


def no_signals(state: SessionState, call: CallState, *, target: Target) -> tuple[Signals, ...]:
    """Nobody reports."""
    return ()


class _Asking(NamedTuple):
    """An attempt that asks, where it would go, and the time that all of its words carry."""

    live: Live
    call: CallState
    found: Found
    now_ms: int


class Admitting:
    """Asks the row for the driver's calls. `admission` and `absence` hold those who wait."""

    def __init__(
        self,
        driver: Driver,
        *,
        admission: Admission,
        absence: Absence,
        contexts: ContextMaker,
        rules_for: RulesFor,
    ) -> None:
        self._driver = driver
        self.admission = admission
        self._absence = absence
        self._contexts = contexts
        self._rules_for = rules_for
        self.permits = OpenPermits(admission)
        self.hedging = Hedging()
        absence.avoid = self.is_blocked
        self.bar: AskBar = no_bar
        """Whether a breach of the workflow's contract stands against a call."""
        self.signals_of: SignalsOf = no_signals
        self.step_priority: dict[StepType, int] = {}
        """Levels of priority that a step type has at a place which others use, too."""
        self.stopped = False
        """Set when the gateway stops: what is not sent yet stays for the next start."""

    def admit(self, live: Live, call_id: str, *, woken: Waiting | None = None) -> AnyEvent | None:
        """The event that starts, defers or refuses the call's next attempt; None: it waits.

        `woken`: the head it was of its queue, when its turn had come there.
        """
        if self.stopped or live.state.terminal:
            return None
        state, now_ms = live.state, self._driver.now_ms(live)
        call = state.calls[call_id]

        def claiming() -> Waiting:
            priority = self.step_priority.get(call.created.step_type, 0)
            return claim(state, call, woken=woken, step_priority=priority)

        if recovery.outlived(call, now_ms):
            return self._refused(
                live, call, failure=recovery.forgotten(call), policy="idempotency_ttl"
            )
        if state.opened.via:
            loop = self._contexts.loop(state.opened.via)
            if loop is not None:
                return self._refused(live, call, failure=loop, policy="via")
        found = self._absence.target(state, call, claim=claiming)
        if found is None:
            live.waiting.add(call_id)
            return None
        if isinstance(found, AcpError):
            return self._refused(live, call, failure=found, policy="target")
        refused = self._unfit(live, call, target=found.target)
        if refused is not None:
            return refused
        asking = _Asking(live, call, found, now_ms)
        return self._ask(asking, claiming, woken_from=woken.key if woken is not None else "")

    def _unfit(self, live: Live, call: CallState, *, target: Target) -> Refused | None:
        """The refusal of a call that the contract keeps from this target."""
        workflow = live.state.workflow
        if workflow is None:
            return None
        contract = workflow.contract
        if contract.sla:
            bar = self.bar(live.state, call, pin=_pin(target))
            if bar is not None:
                refused = self._refused(live, call, failure=bar.error, policy=BAR)
                return msgspec.structs.replace(refused, fall_back=bar.fall_back)
        if contract.sandbox is None:
            return None
        unheld = sandbox_demands.refusal(contract.sandbox, target.card, action=call.created.action)
        if unheld is None:
            return None
        return self._refused(live, call, failure=unheld, policy="sandbox")

    def _ask(self, asking: "_Asking", claim: Claim, *, woken_from: str) -> AnyEvent | None:
        live, call, found, now_ms = asking
        row, demand = self.admission.row, self.admission.demand
        wish = self._wish(live, call, target=found.target, now_ms=now_ms, is_head=woken_from != "")
        lane = row.lane(wish)
        phase = breaker.phase_at(lane.circuit, wish.now_ms)
        if call.number == 1 and not woken_from:
            tell_demand(demand, live.state, call=call, pin=wish.pin, keys=lane.slot_keys)
        verdict = self.admission.ask(wish, claim, woken_from=woken_from)
        if isinstance(verdict, Permit):
            self.permits.put((call.created.call_id, call.number), verdict)
            return self._started(asking, wish, phase=phase)
        if isinstance(verdict, Defer):
            live.waiting.add(call.created.call_id)
            return None if woken_from else self._deferred(asking, wish, verdict=verdict)
        return self._refused(live, call, failure=verdict.error, policy=verdict.policy)

    def hedge(self, live: Live, call_id: str) -> AttemptStarted | None:
        """A second attempt of a call, at another instance, if one is free for it now."""
        call = live.state.calls[call_id]
        first = call.started(call.number)
        if self.stopped or first is None or not call.is_out(call.number):
            return None
        target = self._absence.another(live.state, first)
        if target is None:
            return None
        now_ms = self._driver.now_ms(live)
        wish = msgspec.structs.replace(
            self._wish(live, call, target=target, now_ms=now_ms), is_retry=True
        )
        permit = self.admission.start_now(wish) if self.hedging.may_hedge(wish) else None
        if permit is None:
            return None
        self.hedging.hedged(wish)
        self.permits.put((call_id, call.number + 1), permit)
        phase = breaker.phase_at(self.admission.row.circuit(wish), wish.now_ms)
        asking = _Asking(live, call, Found(target), now_ms)
        started = self._started(asking, wish, phase=phase)
        lease = budget.lease(live.state.budget_left - 1, call.lease_most - 1)
        return msgspec.structs.replace(
            started,
            attempt=call.number + 1,
            lease=min(started.lease, max(0, lease)),
            wait_ms=0,
            queued_at_ms=started.at_ms,
            hedge_after_ms=0,
            hedge=True,
        )

    def answered_well(self, live: Live, call: CallState, *, ended: AttemptEnded) -> None:
        """How long a good answer took: what a later one's hedge is reckoned by."""
        started = call.started(ended.attempt)
        if started is None or not self.hedging.is_on or not hedges.may_have_one(call):
            return
        target = self._absence.instance(started.instance)
        if target is None or not self._rules_for(target).hedge.share:
            return
        wish = self._wish(live, call, target=target, now_ms=ended.at_ms)
        self.hedging.served(wish, ended.service_ms or ended.at_ms - started.at_ms)

    def _wish(
        self, live: Live, call: CallState, *, target: Target, now_ms: int, is_head: bool = False
    ) -> Wish:
        created, workflow = call.created, live.state.workflow
        deadline_at_ms = live.state.deadline_at(now_ms)
        return Wish(
            rules=self._rules_for(target),
            step_type=created.step_type.value,
            instance=target.component_id,
            pin=_pin(target),
            action=created.action,
            workflow=workflow.name if workflow else "",
            contract_rate=workflow.contract.rates.get(created.action) if workflow else None,
            left_ms=deadline.timeout_ms(created.timeout_ms, deadline_at_ms, now_ms=now_ms),
            patience_ms=deadline_at_ms - now_ms if deadline_at_ms else math.inf,
            now_ms=self.admission.now_ms(),
            is_retry=call.number > 1 and was_sent(call),
            is_head=is_head,
        )

    def _started(self, asking: "_Asking", wish: Wish, *, phase: breaker.Phase) -> AttemptStarted:
        live, call, found, now_ms = asking
        target = found.target
        return AttemptStarted(
            at_ms=now_ms,
            call_id=call.created.call_id,
            attempt=call.number,
            component=target.card.name,
            version=target.card.version,
            instance=target.component_id,
            timeout_ms=wish.left_ms,
            lease=self._lease(live, call, wish=wish, phase=phase),
            wait_ms=max(0, now_ms - call.queued_at_ms),
            queued_at_ms=call.queued_at_ms,
            breaker=phase.value,
            signals=self.signals_of(live.state, call, target=target),
            parameter_version=wish.rules.version,
            deviation=found.deviation,
            hedge_after_ms=self._hedge_after_ms(call, wish),
        )

    def _hedge_after_ms(self, call: CallState, wish: Wish) -> int:
        on = wish.rules.hedge.share > 0 and hedges.may_have_one(call)
        return self.hedging.began(wish) if on else 0

    def _lease(self, live: Live, call: CallState, *, wish: Wish, phase: breaker.Phase) -> int:
        """What the attempt may spend. Nothing while the target fails: those behind it would go on
        repeating what the gateway itself has stopped to repeat."""
        if phase is not breaker.Phase.CLOSED:
            return 0
        retries = self.admission.row.retries
        if retries.states:
            missing = retries.state(retries.key(wish))
            if not retry_tokens.may_retry(missing, wish.rules.retries):
                return 0
        return budget.lease(live.state.budget_left, call.lease_most)

    def _deferred(self, asking: "_Asking", wish: Wish, *, verdict: Defer) -> Deferred:
        _, call, _, now_ms = asking
        wait_ms = round(verdict.until_ms - wish.now_ms) if verdict.until_ms else 0
        return Deferred(
            at_ms=now_ms,
            call_id=call.created.call_id,
            attempt=call.number,
            policy=verdict.policy,
            until_ms=now_ms + wait_ms if wait_ms else 0,
        )

    def _refused(self, live: Live, call: CallState, *, failure: AcpError, policy: str) -> Refused:
        return Refused(
            at_ms=self._driver.now_ms(live),
            call_id=call.created.call_id,
            attempt=call.number,
            error=failure,
            policy=policy,
        )

    def around(self, live: Live, call: CallState) -> Around:
        """What is known of the instance that the next attempt would go to."""
        at_ms = self._driver.now_ms(live)
        target = self._absence.next_target(live.state, call)
        if target is None:
            return Around(at_ms=at_ms)
        wish = self._wish(live, call, target=target, now_ms=at_ms)
        row, signals = self.admission.row, target.signals
        circuit, missing = row.circuit(wish), row.retries.state(row.retries.key(wish))
        return Around(
            at_ms=at_ms,
            breaker=breaker.phase_at(circuit, wish.now_ms).value,
            breaker_open_ms=breaker.open_left_ms(circuit, wish.now_ms),
            retry_tokens=retry_tokens.share_left(missing, wish.rules.retries),
            may_retry=retry_tokens.may_retry(missing, wish.rules.retries),
            signals=signals,
            signals_age_ms=max(0, at_ms - target.signals_at_ms) if signals is not None else None,
        )

    def has_room(self, live: Live, call: CallState) -> bool:
        """Whether a call that stands behind all others may be asked about: it would not have to
        wait, nobody waits, and half of its slots are free. What would be refused may be too."""
        target = self._absence.next_target(live.state, call)
        if target is None:
            return True
        wish = self._wish(live, call, target=target, now_ms=self._driver.now_ms(live))
        row = self.admission.row
        verdict = row.check(wish)
        if not isinstance(verdict, Admit):
            return isinstance(verdict, Refuse)
        of_type, of_target = row.slots
        used = of_type.state(of_type.key(wish)), of_target.state(of_target.key(wish))
        limits = wish.rules.queues[wish.step_type].limit, wish.rules.target.limit
        return not self.is_busy and 2 * used[0] < limits[0] and 2 * used[1] < limits[1]

    @property
    def is_busy(self) -> bool:
        """Whether any call waits for its turn anywhere."""
        return bool(self.admission.row.waiting)

    def is_blocked(self, target: Target) -> bool:
        """Whether its breaker would let nobody through now."""
        circuit = self.admission.row.breaker.states.get(f"breaker:{target.component_id}")
        if circuit is None:
            return False
        rules = self._rules_for(target).breaker
        return not breaker.has_room(circuit, rules, now_ms=self.admission.now_ms())

    # ---- those who waited ------------------------------------------------------------------------

    def wake(self, waiting: Waiting) -> None:
        """Ask a waiting attempt again; on a fresh stack, because a feed may be running now."""
        asyncio.get_running_loop().call_soon(self._ask_again, waiting)

    def drop(self, waiting: Waiting, failure: AcpError) -> None:
        """Refuse an attempt that had to leave its queue; on a fresh stack, as `wake`."""
        asyncio.get_running_loop().call_soon(self._drop, waiting, failure)

    def _drop(self, waiting: Waiting, failure: AcpError) -> None:
        live = self._driver.find(waiting.session_id)
        call = live.state.calls.get(waiting.call_id) if live else None
        if live is None or call is None or not still_waits(call, waiting):
            return
        live.waiting.discard(waiting.call_id)
        self._driver.feed(live, self._refused(live, call, failure=failure, policy="displaced"))

    def _ask_again(self, waiting: Waiting) -> None:
        """Whoever was woken and does not start leaves its turn to the next."""
        event = self._asked_again(waiting)
        if waiting.key and not isinstance(event, AttemptStarted):
            self.admission.wake_one(waiting.key)

    def _asked_again(self, waiting: Waiting) -> AnyEvent | None:
        live = self._driver.find(waiting.session_id)
        call = live.state.calls.get(waiting.call_id) if live else None
        if live is None or call is None or not still_waits(call, waiting):
            self._absence.forget(waiting)
            return None
        live.waiting.discard(waiting.call_id)
        event = self.admit(live, waiting.call_id, woken=waiting)
        if event is not None:
            self._driver.feed(live, event)
        return event

    @property
    def held(self) -> tuple[str, ...]:
        """What attempts have taken, or wait for; nothing once nothing runs."""
        row = self.admission.row
        probes = (f"{key}: {one.out} out" for key, one in row.breaker.states.items() if one.out)
        slots = (f"{key}: {count} taken" for key, count in row.taken().items() if count)
        waiting = (f"{key}: {count} waiting" for key, count in row.waiting.items())
        permits = (f"{len(self.permits)} permits open",) if len(self.permits) else ()
        return (*permits, *probes, *slots, *waiting)

    def queue_depth(self, step_type: str) -> int:
        """Calls of this step type that wait for a slot."""
        return self.admission.depth(f"queue:{step_type}")


def _pin(target: Target) -> str:
    return f"{target.card.name}@{target.card.version}"


def was_sent(call: CallState) -> bool:
    """Whether an earlier attempt left the gateway, or tried to: then the next one is a retry."""
    return any(attempt.started is not None and not _held_back(attempt) for attempt in call.attempts)


def _held_back(attempt: AttemptState) -> bool:
    """Admitted, and then not sent for reasons of the gateway's own."""
    ended = attempt.ended
    if ended is None or not ended.not_sent or ended.error is None:
        return False
    return ended.error.boundary is not Boundary.COMPONENT
