"""The row of policies around a target: check all of them, then take all of them, close once.

`ROW` is the order in which they are asked. Only if every one admits is anything taken, so that a
refusal by a later policy costs an earlier one nothing.
"""

import msgspec

from gateway.governance import concurrency, deadline
from gateway.governance.concurrency import Slots
from gateway.governance.verdicts import ADMIT, Admit, Verdict

ROW = ("deadline", "concurrency of the step type", "concurrency of the target")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that wants to start, with the slots it needs, outermost first."""

    keys: tuple[str, ...]
    left_ms: int
    is_head: bool = False


def check(slots: dict[str, Slots], wish: Wish) -> Verdict:
    """The first policy that does not admit, or ADMIT."""
    verdict = deadline.check(wish.left_ms)
    for key in wish.keys:
        if not isinstance(verdict, Admit):
            return verdict
        verdict = concurrency.check(slots[key], key, is_head=wish.is_head)
    return verdict if not isinstance(verdict, Admit) else ADMIT


def take(slots: dict[str, Slots], keys: tuple[str, ...]) -> None:
    """Everything at once; the caller keeps `keys` as the permit and closes it exactly once."""
    for key in keys:
        slots[key] = concurrency.take(slots[key])


def close(slots: dict[str, Slots], keys: tuple[str, ...]) -> None:
    """The attempt is over, however it went, or was not sent after all."""
    for key in keys:
        slots[key] = concurrency.give_back(slots[key])
