"""May one more session begin? Asked before anything of it exists (R09, mission R06).

The forecast says how long its calls would wait behind everything admitted before it; the law of
`governance.queue_delay` says whether that is too long. A refusal costs the caller one answer with
`Retry-After`; what is let in is meant to end in its time. Sessions under way are never turned out.
"""

from collections.abc import Callable

import msgspec

from acp_spec.model.errors import AcpError, AcpFailure
from acp_spec.model.ids import unit_interval
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Workflow
from gateway.governance import queue_delay, sharing
from gateway.governance.forecast import ServiceTime, Station, forecast
from gateway.governance.queue_delay import CALM, QueueDelay, Standing
from gateway.governance.verdicts import Refuse
from gateway.runtime.demand import Visit
from gateway.runtime.queueing import Admission, Load

STANDING_MAX = 1_000
"""Workflow versions whose delay stood lately; beyond it the oldest is seen anew."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to open a session, and for what."""

    session_id: str
    tenant: str
    priority: int
    deadline_ms: int
    workflow: Workflow | None
    pins: dict[str, str]


class Intake:
    """The gate in front of new sessions. `law()`: what holds now."""

    def __init__(
        self,
        admission: Admission,
        catalog: Callable[[], Catalog],
        *,
        law: Callable[[], QueueDelay],
    ) -> None:
        self._admission = admission
        self._demand = admission.demand
        self._catalog = catalog
        self._law = law
        self._standing: dict[str, Standing] = {}

    def admit(self, asking: Asking) -> None:
        """Count it in, or raise AcpFailure OVERLOADED, RATE_LIMITED or, of a deadline, TIMEOUT."""
        workflow = asking.workflow
        if workflow is None or not self._law().target_ms:
            return
        visits = self._demand.visits(
            asking.session_id, workflow, pins=asking.pins, catalog=self._catalog()
        )
        self._check(asking, workflow, visits=visits)
        self._demand.admitted(
            asking.session_id, asking.tenant, digest=workflow.source_digest, visits=visits
        )

    def withdrawn(self, session_id: str) -> None:
        """It was let in and did not open after all: it must not count for ever."""
        self._demand.ended(session_id)

    def _check(self, asking: Asking, workflow: Workflow, *, visits: list[Visit]) -> None:
        digest = workflow.source_digest
        if digest not in self._standing and self._is_free(visits):
            return
        seen = forecast(self._station(visit, workflow) for visit in visits if visit.keys)
        if not seen.wait_ms and digest not in self._standing:
            return
        standing = self._observed(digest, seen.wait_ms)
        crowd = self._demand.crowd(asking.tenant)
        newcomer = queue_delay.Newcomer(
            wait_ms=seen.wait_ms,
            whole_ms=seen.whole_ms,
            deadline_ms=asking.deadline_ms,
            floor_ms=seen.floor_ms,
            least_ms=seen.least_ms,
            allowance=sharing.allowance(crowd, asking.priority),
            crowds=sharing.crowds(crowd),
        )
        verdict = queue_delay.check(standing, self._law(), newcomer=newcomer)
        if isinstance(verdict, Refuse):
            self._standing[digest] = queue_delay.held_back(standing)
            raise AcpFailure(_spread(verdict, asking.session_id))

    def _is_free(self, visits: list[Visit]) -> bool:
        """Whether there is a slot everywhere, were all that is admitted there at once: the usual
        case, told without a forecast."""
        row, to_come = self._admission.row, self._demand.to_come
        for visit in visits:
            for key, limit in zip(visit.keys, visit.limits, strict=True):
                if row.inflight(key) + row.waiting.get(key, 0) + to_come(key) >= limit:
                    return False
        return True

    def _station(self, visit: Visit, workflow: Workflow) -> Station:
        """The tighter of the places that a call needs at once: its step type's and its target's.

        A step with a condition may pass without its call: the least that it takes is nothing.
        """
        stations = [
            self._at(key, visit, limit=limit)
            for key, limit in zip(visit.keys, visit.limits, strict=True)
        ]
        tighter = max(stations, key=lambda station: station.free_after_ms)
        if workflow.steps[visit.step].condition is None:
            return tighter
        return msgspec.structs.replace(tighter, fastest_ms=0.0)

    def _at(self, key: str, visit: Visit, *, limit: int) -> Station:
        load, service = self._admission.load(key), self._demand.service(key)
        return Station(
            step=visit.step,
            limit=limit,
            ahead=load.inflight + load.waiting + self._demand.to_come(key),
            service_ms=service.mean_ms,
            fastest_ms=service.fastest_ms,
            stalled_ms=self._stalled_ms(load, service),
            share=visit.share,
        )

    def _stalled_ms(self, load: Load, service: ServiceTime) -> float:
        """For how long nothing ended where calls wait, beyond the time that a call takes.

        Counted from when they began to wait: a burst behind a quiet hour is no hang.
        """
        if not load.waiting:
            return 0.0
        since_ms = max(service.at_ms, load.since_ms)
        return max(0.0, self._admission.now_ms() - since_ms - service.mean_ms)

    def _observed(self, digest: str, delay_ms: float) -> Standing:
        now_ms = self._admission.now_ms()
        before = self._standing.pop(digest, CALM)
        after = queue_delay.observe(before, self._law(), delay_ms=delay_ms, now_ms=now_ms)
        if after.shedding or after.since_ms is not None:
            if len(self._standing) >= STANDING_MAX:
                del self._standing[next(iter(self._standing))]
            self._standing[digest] = after
        return after


def _spread(refused: Refuse, session_id: str) -> AcpError:
    """The refusal with its hint spread out: those refused together must not return together."""
    after_ms = refused.error.retry_after_ms
    if after_ms is None:
        return refused.error
    later_ms = int(after_ms * (1 + unit_interval("retry-after", session_id)))
    return msgspec.structs.replace(refused.error, retry_after_ms=later_ms)
