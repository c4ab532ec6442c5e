"""Laws of a target: its breaker, its probes, its rate, as seen from what is started and sent.

Counted anew in every life, because a start judges every target afresh.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

from acp_spec.model.card import Limits
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.events import AttemptEnded, AttemptStarted, OperationEnded

LEAST_FAILURES: Final = 5
"""No breaker of the default rules opens for fewer failures of its target."""
PATIENCE_S: Final = 10.0
"""A probe that takes longer does not keep the next one out."""
SLACK_S: Final = 0.005
"""Between a token and the send behind it."""

Broken = Callable[[str, str], None]


class TargetLaws:
    """`broken(law, what)` is told what does not hold."""

    def __init__(self, now_s: Callable[[], float], broken: Broken) -> None:
        self._now_s = now_s
        self._broken = broken
        self._failures: Counter[str] = Counter()
        self._probes: dict[str, dict[tuple[str, int], float]] = {}
        self._instances: dict[tuple[str, int], str] = {}
        self._full_at_s: dict[str, float] = {}

    def life_ended(self) -> None:
        self._failures.clear()
        self._probes.clear()
        self._instances.clear()
        self._full_at_s.clear()

    def started(self, event: AttemptStarted) -> None:
        """An attempt was admitted."""
        self._instances[event.call_id, event.attempt] = event.instance
        if event.breaker == "open":
            self._broken("nothing is sent through an open breaker", event.instance)
        if event.breaker != "half_open":
            return
        if self._failures[event.instance] < LEAST_FAILURES:
            what = f"{self._failures[event.instance]} failures of {event.instance}"
            self._broken("a breaker opens for its target's failures", what)
        out = self._probes.setdefault(event.instance, {})
        now_s = self._now_s()
        if any(now_s - since_s < PATIENCE_S for since_s in out.values()):
            self._broken("probes are few", f"{len(out) + 1} at {event.instance}")
        out[event.call_id, event.attempt] = now_s

    def ended(self, event: AttemptEnded) -> None:
        address = (event.call_id, event.attempt)
        instance = self._instances.pop(address, "")
        self._probes.get(instance, {}).pop(address, None)
        self._failed(instance, event.error)

    def operation_ended(self, instance: str, event: OperationEnded) -> None:
        """Its permit judges the target only now."""
        self._failed(instance, event.error)

    def _failed(self, instance: str, failure: AcpError | None) -> None:
        if failure is None or failure.boundary is Boundary.GATEWAY:
            return
        if failure.reason != Reason.CANCELLED.value:
            self._failures[instance] += 1

    def arrives(self, place: str, limits: Limits) -> None:
        """An attempt reaches the target: as many a second as its card says, in short bursts."""
        if limits.max_rate_per_s <= 0:
            return
        interval_s = 1.0 / limits.max_rate_per_s
        burst = max(1, math.ceil(limits.max_rate_per_s / 10.0))
        now_s = self._now_s()
        full_at_s = self._full_at_s.get(place, -math.inf)
        if now_s < full_at_s - (burst - 1) * interval_s - SLACK_S:
            self._broken("rates are kept", f"{place} gets more than {limits.max_rate_per_s:g} a s")
        self._full_at_s[place] = max(full_at_s, now_s) + interval_s
