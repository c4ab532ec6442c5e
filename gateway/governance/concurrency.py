"""So many at once, so many waiting: a bulkhead around one target or one kind of step (R07, R09).

Pure: a `Slots` is a value; `take` and `give_back` return the next one.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict

RETRY_AFTER_MS = 500
"""Hint with a refusal: about what a full queue of short calls needs to move."""


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """`limit` in flight, `max_waiting` behind them; both at least as the configuration says."""

    limit: int
    max_waiting: int
    inflight: int = 0
    waiting: int = 0


def check(slots: Slots, key: str, *, is_head: bool) -> Verdict:
    """May one more start? A newcomer never passes those who wait (`is_head`: it waited)."""
    if slots.inflight < slots.limit and (is_head or not slots.waiting):
        return ADMIT
    if is_head or slots.waiting < slots.max_waiting:
        return Defer("concurrency", key)
    message = f"{key}: {slots.inflight} in flight and {slots.waiting} waiting is all it takes"
    refusal = error(
        Reason.OVERLOADED, message, boundary=Boundary.GATEWAY, retry_after_ms=RETRY_AFTER_MS
    )
    return Refuse("concurrency", refusal)


def take(slots: Slots) -> Slots:
    return msgspec.structs.replace(slots, inflight=slots.inflight + 1)


def give_back(slots: Slots) -> Slots:
    assert slots.inflight > 0, "a slot is given back once"
    return msgspec.structs.replace(slots, inflight=slots.inflight - 1)


def queue(slots: Slots) -> Slots:
    return msgspec.structs.replace(slots, waiting=slots.waiting + 1)


def leave_queue(slots: Slots) -> Slots:
    assert slots.waiting > 0, "who leaves a queue stood in it"
    return msgspec.structs.replace(slots, waiting=slots.waiting - 1)
