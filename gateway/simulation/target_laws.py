"""Laws of a target: its breaker, its probes, its rate, as seen from what is started and sent.

Counted anew in every life, because a start judges every target afresh. A rate is one of admissions:
what is admitted leaves when its record is on disk, so that calls come as much later as syncs take,
and no law of time can be held where they arrive. `laws` holds that none waits for more than that.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.events import AttemptEnded, AttemptStarted, OperationEnded
from gateway.simulation.cards import RATES

LEAST_FAILURES: Final = 5
"""No breaker of the default rules opens for fewer failures of its target."""
PATIENCE_S: Final = 10.0
"""A probe that takes longer does not keep the next one out."""
ROUNDING_S: Final = 1e-6
"""The row counts in milliseconds, and these laws in seconds."""

LOOKED_BACK: Final = 50
"""Admissions that a stretch of time is begun at."""

Address = tuple[str, int]
Broken = Callable[[str, str], None]


class TargetLaws:
    """`broken(law, what)` is told what does not hold."""

    def __init__(self, now_s: Callable[[], float], broken: Broken) -> None:
        self._now_s = now_s
        self._broken = broken
        self._failures: Counter[str] = Counter()
        self._probes: dict[str, dict[Address, float]] = {}
        self._instances: dict[Address, str] = {}
        self._admitted: dict[str, dict[Address, float]] = {}
        """When whom at an instance with a rate, but those who never reached it."""
        self._unused: dict[Address, str] = {}
        """Who has not reached its target yet, and where that is."""

    def life_ended(self) -> None:
        self._failures.clear()
        self._probes.clear()
        self._instances.clear()
        self._admitted.clear()
        self._unused.clear()

    def started(self, event: AttemptStarted) -> None:
        """An attempt was admitted."""
        self._instances[event.call_id, event.attempt] = event.instance
        self._takes_token(event, RATES.get(event.component, 0.0))
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
        self._token_back(address)
        instance = self._instances.pop(address, "")
        self._probes.get(instance, {}).pop(address, None)
        self._failed(instance, event.error)

    def operation_ended(self, instance: str, event: OperationEnded) -> None:
        """Its permit judges the target only now."""
        self._failed(instance, event.error)
        for address in [one for one in self._unused if one[0] == event.call_id]:
            self._token_back(address)  # it waited for its sync while a call-back ended the call

    def failed_beside(self, instance: str) -> None:
        """A twin's attempt failed there: no event tells of it, and the breaker counts it."""
        self._failures[instance] += 1

    def _failed(self, instance: str, failure: AcpError | None) -> None:
        if failure is None or failure.boundary is Boundary.GATEWAY:
            return
        if failure.reason != Reason.CANCELLED.value:
            self._failures[instance] += 1

    # ---- rates -------------------------------------------------------------------------------

    def _takes_token(self, event: AttemptStarted, per_second: float) -> None:
        """Over no stretch of time are more admitted than the card says and one short burst."""
        if per_second <= 0:
            return
        burst = max(1, math.ceil(per_second / 10.0))
        instance, now_s = event.instance, self._now_s()
        admitted = self._admitted.setdefault(instance, {})
        for since, at_s in enumerate(reversed(admitted.values()), start=2):
            if since > burst + (now_s - at_s + ROUNDING_S) * per_second:
                what = (
                    f"{event.component} at {instance} is asked more than {per_second:g} times a s"
                )
                self._broken("rates are kept", what)
        admitted[event.call_id, event.attempt] = now_s
        if len(admitted) > LOOKED_BACK:
            del admitted[next(iter(admitted))]
        self._unused[event.call_id, event.attempt] = instance

    def arrives(self, address: Address) -> None:
        """An attempt reaches its target: its token is used."""
        self._unused.pop(address, None)

    def _token_back(self, address: Address) -> None:
        """Nothing reached the target: it is as if it had never been admitted."""
        self._admitted.get(self._unused.pop(address, ""), {}).pop(address, None)
