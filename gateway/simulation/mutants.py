"""Bugs on purpose: each exchanges one function of the gateway, and must break the law it names.

A test of the checker: a simulation that does not find these would not find their like. `make` takes
what is there and gives what takes its place; `_wrong_things` are as a tired colleague writes them.
"""

from typing import Any, Final

import msgspec

from acp_spec.model.enums import SideEffect
from gateway.engine.commands import Advance, Call, Command, Send, StartTimer
from gateway.engine.events import Decided, Late, StepEnded, Timer
from gateway.engine.states import Phase, SessionState
from gateway.governance import breaker
from gateway.governance.verdicts import ADMIT
from gateway.runtime.absence import Found
from gateway.runtime.connection import Answer
from gateway.simulation.exchanging import Mutant, every_second, handling, without

replace = msgspec.structs.replace


def _sends_at_once(before: Any) -> Any:
    return lambda self, live, command: self._send(live, command)


def _waits_for_the_disk(before: Any) -> Any:
    def send(self: Any, live: Any, command: Send) -> None:
        live.unwritten += 1
        self._driver.committer.after_sync(lambda: self._send_synced(live, command))

    return send


def _synced_when_written(before: Any) -> Any:
    return lambda self: self.written()


def _acts_at_once(before: Any) -> Any:
    def after_write(self: Any, callback: Any) -> None:
        before(self, lambda: None)
        callback()

    return after_write


def _syncs_nothing(before: Any) -> Any:
    def ask(self: Any) -> None:
        self._asked_tick = self._synced_tick = self._written_tick
        due = [callback for _, callbacks in self._waiting for callback in callbacks]
        self._waiting.clear()
        self._run(due)

    return ask


def _closes_twice(before: Any) -> Any:
    def observe(self: Any, permit: Any, outcome: Any, *, retry_after_ms: int = 0) -> Any:
        rest = before(self, permit, outcome, retry_after_ms=retry_after_ms)
        column = self.row.slots[1]
        key = column.key(permit.wish)
        if column.states.get(key, 0) > 1:
            column.states[key] -= 1
        return rest

    return observe


def _leaks_probes(before: Any) -> Any:
    def probed(state: Any, closing: Any) -> Any:
        after = before(state, closing)
        return replace(after, out=state.out) if after.phase is breaker.Phase.HALF_OPEN else after

    return probed


def _hears_no_cancel(before: Any) -> Any:
    def end_early(state: SessionState, ending: Any) -> list[Command]:
        return [] if ending.status.value == "CANCELLED" else before(state, ending)

    return end_early


def _keeps_number(handler: Any) -> Any:
    def decided(state: SessionState, event: Decided) -> list[Command]:
        commands: list[Command] = handler(state, event)
        call = state.calls[event.call_id]
        if call.phase is not Phase.BACKOFF:
            return commands
        call = state.calls[event.call_id] = replace(call, number=call.number - 1)
        return [StartTimer(Timer.BACKOFF, call.resume_at_ms, event.call_id, call.number)]

    return decided


def _believes_late(handler: Any) -> Any:
    def late(state: SessionState, event: Late) -> list[Command]:
        commands: list[Command] = handler(state, event)
        call = state.calls[event.call_id]
        if event.error is None and not call.open:
            state.calls[event.call_id] = replace(call, output=event.response)
        return commands

    return late


def _thinks_lost_is_undone(before: Any) -> Any:
    def lost(*args: Any, **named: Any) -> Any:
        return replace(before(*args, **named), side_effect=SideEffect.NONE)

    return lost


def _waits_no_more(before: Any) -> Any:
    """What waited for its backoff is sent at once after a start, and no event says so."""

    def pending(state: SessionState, at_ms: int) -> list[Command]:
        commands: list[Command] = before(state, at_ms)
        for call in state.open_calls():
            if call.phase is Phase.BACKOFF:
                call_id = call.created.call_id
                state.calls[call_id] = replace(call, phase=Phase.READY)
                commands += [Call(call_id), Advance()]
        return commands

    return pending


async def _nothing(*args: Any) -> None:
    return None


def _forgets_steps(before: Any) -> Any:
    def apply(state: SessionState, event: Any) -> list[Command]:
        version = state.version
        commands: list[Command] = before(state, event)
        if isinstance(event, StepEnded):
            state.version = version
        return commands

    return apply


def _another_key(before: Any) -> Any:
    def make(self: Any, state: Any, call: Any, *, started: Any, timeout_ms: int) -> Any:
        context = before(self, state, call, started=started, timeout_ms=timeout_ms)
        return context if started.attempt == 1 else replace(context, body_digest="0" * 64)

    return make


def _takes_silence_for_proof(before: Any) -> Any:
    def answered(self: Any, session_id: str, command: Send, *, answer: Answer, late: bool) -> None:
        if answer.side_effect is SideEffect.UNKNOWN and not answer.answered:
            answer = replace(answer, side_effect=SideEffect.NONE, not_sent=True)
        before(self, session_id, command, answer=answer, late=late)

    return answered


def _goes_with_the_crowd(before: Any) -> Any:
    def now(self: Any, state: SessionState, call: Any) -> Any:
        target = self._active(call.created.component, state.session_id)
        return Found(target) if target is not None else before(self, state, call)

    return now


def _constant(value: object) -> Any:
    return lambda before: lambda *args, **named: value


GUARDS: Final = "gateway.engine.recovery:GUARDS"
HANDLERS: Final = "gateway.engine.step:HANDLERS"
ADMISSION: Final = "gateway.runtime.queueing:Admission"
BUDGET, TWICE = "attempts within budget", "NONE never twice"
LENT, HELD = "the budget is lent, never made", "permits are closed"
AFTER_CANCEL, ONCE = "nothing is sent after a cancel", "every trajectory exactly once"
APPEND, PROMISE = "append first, act second", "a promise leaves after its sync"
ENDS, REPLAY = "every session ends", "replay gives the same commands"

MUTANTS: Final[dict[str, Mutant]] = {
    "forget-the-budget": Mutant(
        place=GUARDS,
        laws=(LENT, BUDGET),
        story="no guard looks at the session's budget",
        make=without("session_budget"),
    ),
    "retry-for-ever": Mutant(
        place=GUARDS,
        laws=(BUDGET, LENT),
        story="no guard counts the attempts of a call",
        make=without("call_retries"),
    ),
    "retry-none": Mutant(
        place=GUARDS,
        laws=(TWICE,),
        story="NONE actions are sent again like others",
        make=without("idempotency"),
    ),
    "outlive-the-key": Mutant(
        place="gateway.engine.recovery:outlived",
        laws=("never after the key's time", TWICE),
        story="nobody looks how old a key is",
        make=_constant(False),
    ),
    "acknowledge-unsynced": Mutant(
        place="gateway.runtime.committer:Committer.synced",
        laws=(PROMISE, "only synced events leave"),
        story="a write counts as a sync",
        make=_synced_when_written,
    ),
    "send-before-sync": Mutant(
        place="gateway.runtime.executors:Executors._send_when_safe",
        laws=(APPEND,),
        story="WRITEs leave with their record, not behind its sync",
        make=_sends_at_once,
    ),
    "reads-wait-for-the-disk": Mutant(
        place="gateway.runtime.executors:Executors._send_when_safe",
        laws=("what may leave leaves",),
        story="READs wait for a sync that they do not need",
        make=_waits_for_the_disk,
    ),
    "act-before-write": Mutant(
        place="gateway.runtime.committer:Committer.after_write",
        laws=(APPEND,),
        story="commands are acted on while the batch is in memory",
        make=_acts_at_once,
    ),
    "sync-nothing": Mutant(
        place="gateway.runtime.committer:Committer._ask_for_sync",
        laws=(APPEND, PROMISE),
        story="the sync is left out and called done",
        make=_syncs_nothing,
    ),
    "leak-a-permit": Mutant(
        place=f"{ADMISSION}.observe",
        laws=(HELD, "nobody waits for ever"),
        story="every second permit is never closed",
        make=lambda before: every_second(before, lambda self, permit, outcome, **named: None),
    ),
    "close-twice": Mutant(
        place=f"{ADMISSION}.observe",
        laws=("permits bound what is in flight", "no fault of ours"),
        story="a permit is closed twice where nobody notices",
        make=_closes_twice,
    ),
    "wake-nobody": Mutant(
        place=f"{ADMISSION}.wake_one",
        laws=("nobody waits for ever", HELD),
        story="a slot that is free tells nobody",
        make=_constant(None),
    ),
    "lose-a-deferred-call": Mutant(
        place=f"{ADMISSION}._defer",
        laws=("nobody waits for ever", HELD),
        story="every second deferred call stands in no queue",
        make=lambda before: every_second(before, lambda self, verdict, wish, **named: None),
    ),
    "ignore-cancel": Mutant(
        place="gateway.engine.step:_end_early",
        laws=(AFTER_CANCEL,),
        story="a cancel is acknowledged and changes nothing",
        make=_hears_no_cancel,
    ),
    "ignore-the-deadline": Mutant(
        place="gateway.governance.deadline:timeout_ms",
        laws=("nothing is sent after the deadline",),
        story="an attempt gets its own timeout, whatever the session has left",
        make=lambda before: lambda wanted_ms, deadline_at_ms, *, now_ms: wanted_ms,
    ),
    "forget-the-deadline": Mutant(
        place="gateway.engine.step:_deadline",
        laws=(ENDS, "a session ends in its time"),
        story="the deadline's timer fires and nobody listens",
        make=_constant([]),
    ),
    "renumber-attempts": Mutant(
        place=HANDLERS,
        laws=("attempts are numbered in a row",),
        story="a retry keeps the number of the attempt before",
        make=handling(Decided, _keeps_number),
    ),
    "late-answer-wins": Mutant(
        place=HANDLERS,
        laws=("one outcome per call",),
        story="an answer behind the end becomes the outcome",
        make=handling(Late, _believes_late),
    ),
    "lost-is-undone": Mutant(
        place="gateway.runtime.restart:lost_attempt",
        laws=(TWICE,),
        story="what was in flight at a crash counts as not done",
        make=_thinks_lost_is_undone,
    ),
    "re-decide-at-recovery": Mutant(
        place="gateway.runtime.restart:pending",
        laws=(REPLAY, "no fault of ours"),
        story="after a start a wait is over because somebody thinks so",
        make=_waits_no_more,
    ),
    "forget-open-sessions": Mutant(
        place="gateway.assembly.serving:open_sessions",
        laws=(ENDS,),
        story="a start resumes all open sessions but the first",
        make=lambda before: lambda store: before(store)[1:],
    ),
    "skip-the-outbox": Mutant(
        place="gateway.runtime.outbox:Outbox.record",
        laws=(ONCE,),
        story="every second trajectory is not asked for",
        make=lambda before: every_second(before, lambda self, session_id, sequence: None),
    ),
    "deliver-twice": Mutant(
        place="gateway.runtime.outbox:Outbox._settle_delivered",
        laws=(ONCE,),
        story="lines that a crash left behind are not looked at",
        make=lambda before: _nothing,
    ),
    "version-stands-still": Mutant(
        place="gateway.runtime.driver:apply",
        laws=("versions count every event",),
        story="the end of a step does not count",
        make=_forgets_steps,
    ),
    "another-key": Mutant(
        place="gateway.runtime.context:ContextMaker.make",
        laws=("the same bytes under the same key",),
        story="a retry goes out under another digest",
        make=_another_key,
    ),
    "silence-is-proof": Mutant(
        place="gateway.runtime.executors:Executors._answered",
        laws=(TWICE,),
        story="no answer counts as not sent",
        make=_takes_silence_for_proof,
    ),
    "lend-everything": Mutant(
        place="gateway.governance.budget:lease",
        laws=(LENT, "a later attempt never carries more"),
        story="an attempt is lent more than there is",
        make=lambda before: lambda session_left, call_left: session_left + 1,
    ),
    "leak-a-probe": Mutant(
        place="gateway.governance.breaker:_probed",
        laws=(HELD,),
        story="a probe that came home keeps its place",
        make=_leaks_probes,
    ),
    "ignore-the-breaker": Mutant(
        place="gateway.governance.breaker:has_room",
        laws=("nothing is sent through an open breaker", "probes are few"),
        story="there is always room at a breaker",
        make=_constant(True),
    ),
    "probe-with-all": Mutant(
        place="gateway.governance.breaker:has_room",
        laws=("probes are few",),
        story="half-open lets everybody through",
        make=lambda before: (
            lambda circuit, rules, *, now_ms: (
                breaker.phase_at(circuit, now_ms) is breaker.Phase.HALF_OPEN
                or before(circuit, rules, now_ms=now_ms)
            )
        ),
    ),
    "ignore-the-rate": Mutant(
        place="gateway.governance.rate_limit:RateLimit.check",
        laws=("rates are kept",),
        story="nobody looks at the rate that a card states",
        make=_constant(ADMIT),
    ),
    "long-memory": Mutant(
        place="gateway.runtime.intake:Intake._stalled_ms",
        laws=("a hint to return makes sense",),
        story="a quiet hour in front of a burst counts as a hang",
        make=lambda before: (
            lambda self, load, service: (
                self._admission.now_ms() - service.at_ms if load.waiting else 0.0
            )
        ),
    ),
    "twins-write": Mutant(
        place="gateway.runtime.twins:_is_sent",
        laws=("twins only read",),
        story="a twin sends what it should take from the record",
        make=_constant(True),
    ),
    "believe-the-candidate": Mutant(
        place="gateway.runtime.rollout_traffic:guarded",
        laws=("twins only read",),
        story="what a candidate's card calls a READ is sent for a twin",
        make=lambda before: lambda record, pinned, *, catalog: replace(record, writes=frozenset()),
    ),
    "follow-the-active": Mutant(
        place="gateway.runtime.absence:Absence._now",
        laws=("a session stays with its versions",),
        story="calls go to the active version, whatever the session is pinned to",
        make=_goes_with_the_crowd,
    ),
    "erase-nothing": Mutant(
        place="gateway.runtime.committer:Committer.erase",
        laws=("what was erased stays erased",),
        story="a deleted session keeps its key",
        make=lambda before: _nothing,
    ),
}
