"""So many at once, so many waiting: a bulkhead around one target or one kind of step (R07, R09).

Two policies of one kind: the slots of the step type keep slow model servers from starving tools,
those of the target keep one slow instance from taking everything. The state is the number in
flight.
"""

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.governance.rules import Slots
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

RETRY_AFTER_MS = 500
"""Hint with a refusal: about what a full queue of short calls needs to move."""


class Concurrency:
    """What both have in common: all but whose slots they are."""

    name = "concurrency"
    fresh = 0
    settles_late = False
    stirred_by = None
    fades = False

    def key(self, wish: Wish) -> str:
        raise NotImplementedError

    def slots(self, wish: Wish) -> Slots:
        raise NotImplementedError

    def check(self, state: int, wish: Wish, *, waiting: int) -> Verdict:
        """A newcomer never passes those who wait."""
        slots = self.slots(wish)
        if state < slots.limit and (wish.is_head or not waiting):
            return ADMIT
        key = self.key(wish)
        if wish.is_head or waiting < slots.max_waiting:
            return Defer(self.name, key)
        message = f"{key}: {state} in flight and {waiting} waiting is all it takes"
        refusal = error(
            Reason.OVERLOADED, message, boundary=Boundary.GATEWAY, retry_after_ms=RETRY_AFTER_MS
        )
        return Refuse(self.name, refusal)

    def take(self, state: int, wish: Wish) -> tuple[int, int]:
        return state + 1, 0

    def observe(self, state: int, closing: Closing, *, note: int) -> int:
        """However it went the slot is free again, also that of an operation that runs on."""
        assert state > 0, "a slot is given back once"
        return state - 1

    def is_idle(self, state: int, now_ms: float) -> bool:
        return state == 0


class OfStepType(Concurrency):
    """Calls of one step type in the whole gateway."""

    def key(self, wish: Wish) -> str:
        return f"queue:{wish.step_type}"

    def slots(self, wish: Wish) -> Slots:
        return wish.rules.queues[wish.step_type]


class OfTarget(Concurrency):
    """Calls of one instance."""

    def key(self, wish: Wish) -> str:
        return f"instance:{wish.instance}"

    def slots(self, wish: Wish) -> Slots:
        return wish.rules.target


__all__ = ["RETRY_AFTER_MS", "Concurrency", "OfStepType", "OfTarget", "Slots"]
