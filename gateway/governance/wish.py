"""An attempt that wants to start, what it took, and how it was closed: the words of a row."""

import math
from typing import TYPE_CHECKING

import msgspec

from gateway.governance.outcome import Outcome
from gateway.governance.rules import RateRules, Rules

if TYPE_CHECKING:
    from gateway.governance.governor import Lane


class Wish(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who wants to call whom. `pin`: `name@version`; `action` is empty for other calls.

    `left_ms`: what the attempt may take once it is sent; `patience_ms`: what its session has left,
    so how long it may wait. `now_ms` is the row's clock (monotonic); `is_head`: it waited, and its
    turn has come. `contract_rate`: what the contract of `workflow` says of this action.
    """

    rules: Rules
    step_type: str
    instance: str
    left_ms: int
    patience_ms: float = math.inf
    now_ms: float = 0.0
    pin: str = ""
    action: str = ""
    workflow: str = ""
    contract_rate: RateRules | None = None
    is_retry: bool = False
    is_head: bool = False


class Permit(msgspec.Struct, frozen=True, gc=False):
    """What was taken for a wish: at each place of its lane a note, None where nothing is left."""

    wish: Wish
    lane: "Lane"
    notes: tuple[int | None, ...]


class Closing(msgspec.Struct, frozen=True, gc=False):
    """How and when a permit is closed. `retry_after_ms`: what the target asked for."""

    wish: Wish
    outcome: Outcome
    now_ms: float
    retry_after_ms: int = 0
