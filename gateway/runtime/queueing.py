"""Who may start now: the governor's row over live states, and lines of those who wait per key.

Deferred attempts wait by rank within their tenant, tenants taking turns (`lines`); what is given
back wakes one waiting attempt, never all, and a time that a policy named wakes the head by a timer.
A woken attempt is asked again as the head of its queue. What would wait or be served in vain is
refused at once; a full queue makes room by the claims of those who stand in it.
"""

import asyncio
import math
from collections.abc import Callable

import msgspec

from acp_spec.model.errors import AcpError
from gateway.governance import deadline, queue_delay
from gateway.governance.breaker import Phase
from gateway.governance.governor import Row
from gateway.governance.outcome import Outcome
from gateway.governance.rules import Rules
from gateway.governance.verdicts import Admit, Defer, Refuse
from gateway.governance.wish import Permit, Wish
from gateway.runtime.clock import Clock
from gateway.runtime.demand import Demand
from gateway.runtime.lines import Lines, Waiting, WeightOf

__all__ = ["Admission", "Load", "Waiting"]

Wake = Callable[[Waiting], None]
Claim = Callable[[], Waiting]
"""How an attempt stands in a line, made where it has to stand in one."""
WAIT_MS_LEAST = 0.05
"""A timer for less finds the clock where it was: it would be set again and again."""

RulesOf = Callable[[Wish], Rules]
Drop = Callable[[Waiting, AcpError], None]


class Load(msgspec.Struct, frozen=True, gc=False):
    """Calls at a key: in flight, and waiting for a slot; `since_ms`: since when some wait there."""

    inflight: int
    waiting: int
    since_ms: float = 0.0


class _Queue(Lines):
    """`wish` is the last that came: what the head would ask for. `timer` is set while a policy has
    named the head's time. `since_ms`: when the line was empty last."""

    def __init__(self, weight_of: WeightOf, wish: Wish) -> None:
        super().__init__(weight_of)
        self.wish = wish
        self.since_ms = wish.now_ms
        self.timer: asyncio.TimerHandle | None = None


class Admission:
    """Live state of the row, and those who wait at it. `demand`: what sessions ask of each key."""

    def __init__(self, clock: Clock, demand: Demand | None = None) -> None:
        self._clock = clock
        self.demand = demand or Demand()
        self.row = Row()
        self.wake: Wake = lambda waiting: None
        self.on_breaker: Callable[[str, Phase], None] = lambda pin, phase: None
        """Told when the breaker of an instance of `pin` opens or closes."""
        self.drop: Drop = lambda waiting, failure: None
        """Told of an attempt that had to leave its queue, and why."""
        self._queues: dict[str, _Queue] = {}

    def now_ms(self) -> float:
        """The row's clock, which never jumps."""
        return self._clock.monotonic_ms()

    def ask(self, wish: Wish, claim: Claim, *, woken_from: str = "") -> Permit | Defer | Refuse:
        """Admit (close the permit with `observe`), defer (queued, as `claim` says) or refuse.

        Who was `woken_from` a line and does not start lets the next one try: `wake_one`.
        """
        verdict = self.row.check(wish)
        match verdict:
            case Admit():
                return self._start(wish, woken_from)
            case Defer():
                waiting = claim()
                in_vain = self._in_vain(verdict.key, wish, waiting=waiting)
                if in_vain is not None:
                    return in_vain
                self._defer(verdict, wish, waiting=waiting)
                return verdict
            case Refuse():
                return self._make_room(verdict, wish, waiting=claim())

    def start_now(self, wish: Wish) -> Permit | None:
        """Admit, or nothing: for whom it is not worth waiting."""
        return self.row.take(wish) if isinstance(self.row.check(wish), Admit) else None

    def observe(
        self, permit: Permit, outcome: Outcome, *, retry_after_ms: int = 0
    ) -> Permit | None:
        """Close a permit, and wake whoever waited longest for what it gives back.

        For a long operation that was only accepted the rest of the permit, still to be closed.
        """
        now_ms, wish, lane = self.now_ms(), permit.wish, permit.lane
        before = lane.circuit
        rest = self.row.observe(permit, outcome, now_ms=now_ms, retry_after_ms=retry_after_ms)
        after = lane.circuit
        if after is not before and after.phase is not before.phase:
            self.on_breaker(wish.pin, after.phase)
        held = permit.notes[-1] is not None  # not of an operation whose slot came back before
        if held and outcome not in (Outcome.NOT_SENT, Outcome.UNREACHED):
            held_ms, well = now_ms - wish.now_ms, outcome is Outcome.SUCCEEDED
            self.demand.served(lane.slot_keys, held_ms, well=well, now_ms=now_ms)
        if self._queues:
            for key in self.row.keys(wish):
                self.wake_one(key)
        return rest

    def wake_one(self, key: str) -> None:
        """Ask the head of this queue again, if its policies would let somebody start."""
        queue = self._queues.get(key)
        if queue is None:
            return
        if not queue:
            self._forget(key, queue)
            return
        now_ms = self.now_ms()
        wish = msgspec.structs.replace(queue.wish, is_head=True, now_ms=now_ms)
        verdict = self.row.check_at(key, wish)
        if isinstance(verdict, Defer):
            if verdict.until_ms:
                self._arm(key, queue, wait_ms=verdict.until_ms - now_ms)
            return
        waiting = queue.pop()
        if waiting is not None:
            self.row.leave_queue(key)
            self.wake(waiting)

    def renew(self, rules_of: RulesOf) -> None:
        """The rules have changed: whoever waits goes by the new ones from now on."""
        self.row.refill()
        for key, queue in list(self._queues.items()):
            queue.wish = msgspec.structs.replace(queue.wish, rules=rules_of(queue.wish))
            self.wake_one(key)

    def depth(self, key: str) -> int:
        """How many wait at this key."""
        return self.row.waiting.get(key, 0)

    def load(self, key: str) -> Load:
        """How a key of slots stands."""
        queue = self._queues.get(key)
        since_ms = queue.since_ms if queue else 0.0
        return Load(self.row.inflight(key), self.depth(key), since_ms)

    # ---- the verdicts ---------------------------------------------------------------------------

    def _start(self, wish: Wish, woken_from: str) -> Permit | Refuse:
        place = self.row.slot_keys(wish)[-1]
        needed_ms = self.demand.service(place).fastest_ms
        if wish.patience_ms < needed_ms:
            self.demand.doubt(place)
            return deadline.too_late(wish.patience_ms, needed_ms=needed_ms)
        permit = self.row.take(wish)
        if woken_from:
            self.wake_one(woken_from)
        return permit

    def _in_vain(self, key: str, wish: Wish, *, waiting: Waiting) -> Refuse | None:
        """The refusal of an attempt whose session would be over before its turn has come."""
        limit = self.row.limit_at(key, wish)
        if wish.patience_ms == math.inf or not limit:
            return None
        queue, demand = self._queues.get(key), self.demand
        ahead = queue.ahead_of(waiting) if queue else 0
        waits_ms = ahead * demand.service(key).mean_ms / limit
        needed_ms = waits_ms + demand.service(self.row.slot_keys(wish)[-1]).fastest_ms
        if wish.patience_ms >= needed_ms:
            return None
        if not waits_ms:  # no queue is the reason
            return deadline.too_late(wish.patience_ms, needed_ms=needed_ms)
        return queue_delay.hopeless(wish.patience_ms, needed_ms=needed_ms)

    def _make_room(self, verdict: Refuse, wish: Wish, *, waiting: Waiting) -> Defer | Refuse:
        """A full queue: whoever has the weakest claim goes, which may be the newcomer."""
        full = self.row.full_at(wish)
        queue = self._queues.get(full)
        if (
            not queue
            or verdict.policy != "concurrency"
            or self._in_vain(full, wish, waiting=waiting)
        ):
            return verdict
        loser = queue.displaced_by(waiting)
        if loser is None:
            return verdict
        self.row.leave_queue(full)
        self.drop(loser, verdict.error)
        deferred = Defer(verdict.policy, full)
        self._defer(deferred, wish, waiting=waiting)
        return deferred

    def _defer(self, verdict: Defer, wish: Wish, *, waiting: Waiting) -> None:
        key = verdict.key
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(self.demand.weight_of, wish)
        if not queue:
            queue.since_ms = wish.now_ms
        queue.wish = wish
        self.row.queue(key)
        if waiting.key == key:  # what it was woken for was taken meanwhile
            queue.put(waiting)
        else:
            fresh = msgspec.structs.replace(waiting, key=key, order=0)
            queue.put(fresh)
        if verdict.until_ms and queue.timer is None:
            self._arm(key, queue, wait_ms=verdict.until_ms - wish.now_ms)

    def _arm(self, key: str, queue: _Queue, *, wait_ms: float) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
        loop = asyncio.get_running_loop()
        queue.timer = loop.call_later(max(WAIT_MS_LEAST, wait_ms) / 1000, self._due, key, queue)

    def _due(self, key: str, queue: _Queue) -> None:
        queue.timer = None
        if self._queues.get(key) is queue:
            self.wake_one(key)

    def _forget(self, key: str, queue: _Queue) -> None:
        """Nobody waits there: there may be a hundred thousand targets."""
        if queue.timer is not None:
            queue.timer.cancel()
        del self._queues[key]
