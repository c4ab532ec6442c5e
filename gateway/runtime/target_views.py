"""Every instance as its row sees it now: for operators and for metrics. Reads; changes nothing."""

from collections.abc import Callable, Iterable

import msgspec

from gateway.governance import breaker
from gateway.governance.retry_tokens import share_left
from gateway.governance.wish import Wish
from gateway.runtime.admitting import RulesFor
from gateway.runtime.queueing import Admission
from gateway.runtime.targets import Target

Everybody = Callable[[], Iterable[Target]]
"""Every instance that can be called now, or could be but for its breaker."""


class TargetView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`retry_tokens`: the share that is left, of all instances of this version together. `waiting`
    stand in the gateway's queue of this instance: its own SLA has nothing to do with them."""

    component_id: str
    component: str
    breaker: str = "closed"
    open_left_ms: int = 0
    in_flight: int = 0
    waiting: int = 0
    retry_tokens: float = 1.0
    signals_age_ms: int | None = None


class TargetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Every instance that can be called, or could be but for its breaker."""

    targets: tuple[TargetView, ...]


class TargetViews:
    """Looks at the row of one gateway."""

    def __init__(self, admission: Admission, *, rules_for: RulesFor, everybody: Everybody) -> None:
        self._admission = admission
        self._rules_for = rules_for
        self._everybody = everybody

    @property
    def broken(self) -> int:
        """Instances that could be called but for their breaker. The row remembers the breakers of
        those that have left for a while: they may come back."""
        states = self._admission.row.breaker.states
        broken = {key for key, one in states.items() if one.phase is not breaker.Phase.CLOSED}
        if not broken:
            return 0
        return sum(breaker.key_of(one.component_id) in broken for one in self._everybody())

    def of(self, targets: Iterable[Target], *, at_ms: int) -> tuple[TargetView, ...]:
        """A view of each, by name and id."""
        views = [self._view(target, at_ms=at_ms) for target in targets]
        return tuple(sorted(views, key=lambda view: (view.component, view.component_id)))

    def _view(self, target: Target, *, at_ms: int) -> TargetView:
        row, now_ms = self._admission.row, self._admission.now_ms()
        rules = self._rules_for(target)
        pin = f"{target.card.name}@{target.card.version}"
        wish = Wish(
            rules=rules,
            step_type="",
            instance=target.component_id,
            pin=pin,
            left_ms=0,
            now_ms=now_ms,
        )
        circuit = row.circuit(wish)
        slots = f"instance:{target.component_id}"
        waiting = sum(row.waiting.get(key, 0) for key in (slots, row.breaker.key(wish)))
        is_told = target.signals is not None
        return TargetView(
            component_id=target.component_id,
            component=pin,
            breaker=breaker.phase_at(circuit, now_ms).value,
            open_left_ms=breaker.open_left_ms(circuit, now_ms),
            in_flight=row.inflight(slots),
            waiting=waiting,
            retry_tokens=share_left(row.retries.state(row.retries.key(wish)), rules.retries),
            signals_age_ms=max(0, at_ms - target.signals_at_ms) if is_told else None,
        )
