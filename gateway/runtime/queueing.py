"""Who may start now: the governor's row over live counters, and one queue per blocking key.

Deferred attempts wait in arrival order per tenant, tenants taking turns; one slot given back wakes
one waiting attempt, never all. A woken attempt is asked again as the head of its queue.
"""

from collections import OrderedDict, deque
from collections.abc import Callable

import msgspec

from gateway.governance import concurrency, governor
from gateway.governance.concurrency import Slots
from gateway.governance.governor import Wish
from gateway.governance.verdicts import Admit, Defer, Verdict


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
SlotsFor = Callable[[str], Slots]


class _Queue:
    """Arrival order within a tenant, turns between tenants."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, deque[Waiting]] = OrderedDict()

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
    """Live state of the row. `slots_for(key)` gives the limits of a key seen for the first time."""

    def __init__(self, slots_for: SlotsFor) -> None:
        self._slots_for = slots_for
        self.wake: Wake = lambda waiting: None
        self._slots: dict[str, Slots] = {}
        self._queues: dict[str, _Queue] = {}

    def ask(self, wish: Wish, waiting: Waiting) -> Verdict:
        """Admit (slots are taken: close them with `close(wish.keys)`), defer (queued) or refuse.

        Who was woken and does not start lets the next one try: `wake_one(waiting.key)`.
        """
        for key in wish.keys:
            if key not in self._slots:
                self._slots[key] = self._slots_for(key)
        verdict = governor.check(self._slots, wish)
        if isinstance(verdict, Admit):
            governor.take(self._slots, wish.keys)
        elif isinstance(verdict, Defer):
            self._defer(verdict.key, waiting)
        return verdict

    def close(self, keys: tuple[str, ...]) -> None:
        """Give back what an admitted attempt took, and wake who waited longest for it."""
        governor.close(self._slots, keys)
        for key in keys:
            self.wake_one(key)

    def wake_one(self, key: str) -> None:
        """Ask the head of this queue again, if a slot is free."""
        self._forget_idle(key)
        queue, slots = self._queues.get(key), self._slots.get(key)
        if not queue or slots is None or slots.inflight >= slots.limit:
            return
        waiting = queue.pop()
        if waiting is not None:
            self._slots[key] = concurrency.leave_queue(slots)
            self.wake(waiting)

    def depth(self, key: str) -> tuple[int, int]:
        """(in flight, waiting) of a key."""
        slots = self._slots.get(key)
        return (slots.inflight, slots.waiting) if slots else (0, 0)

    def _defer(self, key: str, waiting: Waiting) -> None:
        queue = self._queues.setdefault(key, _Queue())
        self._slots[key] = concurrency.queue(self._slots[key])
        if waiting.key == key:  # the slot it was woken for was taken meanwhile
            queue.put_back(waiting)
        else:
            queue.put(msgspec.structs.replace(waiting, key=key))

    def _forget_idle(self, key: str) -> None:
        """A target that nobody uses keeps no counters: there may be a hundred thousand of them."""
        slots = self._slots.get(key)
        if slots is not None and not slots.inflight and not slots.waiting:
            self._slots.pop(key, None)
            self._queues.pop(key, None)
