"""Who may start now: the governor's row over live states, and one queue per blocking key.

Deferred attempts wait in arrival order per tenant, tenants taking turns; what is given back wakes
one waiting attempt, never all, and a time that a policy named wakes the head by a timer. A woken
attempt is asked again as the head of its queue.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

import msgspec

from gateway.governance.breaker import Phase
from gateway.governance.governor import Row
from gateway.governance.outcome import Outcome
from gateway.governance.verdicts import Admit, Defer, Refuse
from gateway.governance.wish import Permit, Wish
from gateway.runtime.clock import Clock


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in a queue, by name: whoever wakes it looks the session up again.

    `key`: the queue it was woken from; empty for one that waits for a component.
    """

    session_id: str
    call_id: str
    attempt: int
    tenant: str
    key: str = ""


Wake = Callable[[Waiting], None]


class _Queue:
    """Arrival order within a tenant, turns between tenants. `wish` is the last that came: what the
    head would ask for. `timer` is set while a policy has named the head's time."""

    def __init__(self, wish: Wish) -> None:
        self._tenants: OrderedDict[str, deque[Waiting]] = OrderedDict()
        self.wish = wish
        self.timer: asyncio.TimerHandle | None = None

    def put(self, waiting: Waiting) -> None:
        self._tenants.setdefault(waiting.tenant, deque()).append(waiting)

    def put_back(self, waiting: Waiting) -> None:
        self._tenants.setdefault(waiting.tenant, deque()).appendleft(waiting)
        self._tenants.move_to_end(waiting.tenant, last=False)

    def pop(self) -> Waiting | None:
        if not self._tenants:
            return None
        tenant, line = next(iter(self._tenants.items()))
        waiting = line.popleft()
        if line:
            self._tenants.move_to_end(tenant)
        else:
            del self._tenants[tenant]
        return waiting

    def __bool__(self) -> bool:
        return bool(self._tenants)


class Admission:
    """Live state of the row, and those who wait at it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.row = Row()
        self.wake: Wake = lambda waiting: None
        self.on_breaker: Callable[[str, Phase], None] = lambda pin, phase: None
        """Told when the breaker of an instance of `pin` opens or closes."""
        self._queues: dict[str, _Queue] = {}

    def now_ms(self) -> float:
        """The row's clock, which never jumps."""
        return self._clock.monotonic_ms()

    def ask(self, wish: Wish, waiting: Waiting) -> Permit | Defer | Refuse:
        """Admit (close the permit with `observe`), defer (queued) or refuse.

        Who was woken and does not start lets the next one try: `wake_one(waiting.key)`.
        """
        verdict = self.row.check(wish)
        if isinstance(verdict, Admit):
            permit = self.row.take(wish)
            if waiting.key:
                self.wake_one(waiting.key)
            return permit
        if isinstance(verdict, Defer):
            self._defer(verdict, wish, waiting=waiting)
        return verdict

    def observe(
        self, permit: Permit, outcome: Outcome, *, retry_after_ms: int = 0
    ) -> Permit | None:
        """Close a permit, and wake whoever waited longest for what it gives back.

        For a long operation that was only accepted the rest of the permit, still to be closed.
        """
        before = self.row.circuit(permit.wish).phase
        rest = self.row.observe(
            permit, outcome, now_ms=self.now_ms(), retry_after_ms=retry_after_ms
        )
        after = self.row.circuit(permit.wish).phase
        if after is not before:
            self.on_breaker(permit.wish.pin, after)
        if self._queues:
            for key in self.row.keys(permit.wish):
                self.wake_one(key)
        return rest

    def wake_one(self, key: str) -> None:
        """Ask the head of this queue again, if its policies would let somebody start."""
        queue = self._queues.get(key)
        if queue is None:
            return
        if not queue:
            self._drop(key, queue)
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

    def depth(self, key: str) -> int:
        """How many wait at this key."""
        return self.row.waiting.get(key, 0)

    def _defer(self, verdict: Defer, wish: Wish, *, waiting: Waiting) -> None:
        key = verdict.key
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(wish)
        queue.wish = wish
        self.row.queue(key)
        if waiting.key == key:  # what it was woken for was taken meanwhile
            queue.put_back(waiting)
        else:
            queue.put(msgspec.structs.replace(waiting, key=key))
        if verdict.until_ms and queue.timer is None:
            self._arm(key, queue, wait_ms=verdict.until_ms - wish.now_ms)

    def _arm(self, key: str, queue: _Queue, *, wait_ms: float) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
        loop = asyncio.get_running_loop()
        queue.timer = loop.call_later(max(0.0, wait_ms) / 1000, self._due, key, queue)

    def _due(self, key: str, queue: _Queue) -> None:
        queue.timer = None
        if self._queues.get(key) is queue:
            self.wake_one(key)

    def _drop(self, key: str, queue: _Queue) -> None:
        """Nobody waits there: there may be a hundred thousand targets."""
        if queue.timer is not None:
            queue.timer.cancel()
        del self._queues[key]
