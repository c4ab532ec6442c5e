"""What admitted sessions still ask of each place, and how long a call holds a slot there.

A session brings its steps with it when it is let in; a step that is asked for, passed or skipped
is no longer to come. Only names and numbers are kept, of open sessions; nothing here decides.
"""

from collections.abc import Callable

import msgspec

from acp_spec.model.enums import Kind, StepType
from gateway.engine.calls import step_type
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Workflow
from gateway.governance.forecast import NOTHING_KNOWN, ServiceTime, doubted, served
from gateway.governance.rules import Rules
from gateway.governance.sharing import Crowd
from gateway.runtime.habits import Habits, Place, Used
from gateway.runtime.lines import WeightOf
from gateway.runtime.targets import Target, Targets

PLACES_KEPT_MAX = 100_000
"""Places with a known service time; beyond it the oldest go, and are measured anew."""

WAYS_MAX, VISITS_MAX = 1_000, 10_000
"""What is made once for many sessions; beyond it, it is made anew."""

COUNT_MIN = 0.005
"""Less than this to come is the rest of rounding."""


RulesFor = Callable[[Target], Rules]


class Visit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call to come: which step makes it, the slots it will need and how many there are of each,
    how likely it is. Without keys nobody serves it just now."""

    step: int
    keys: tuple[str, ...] = ()
    limits: tuple[int, ...] = ()
    share: float = 1.0


_Way = list[tuple[int, Place | None]]


class _Session(msgspec.Struct, kw_only=True):
    tenant: str
    digest: str
    visits: list[Visit]
    used: Used
    position: int = -1


class Demand:
    """See the module."""

    def __init__(
        self,
        targets: Targets | None = None,
        *,
        rules_for: RulesFor = lambda target: Rules(queues={}),
        weight_of: WeightOf = lambda tenant: 1.0,
    ) -> None:
        self._targets = targets
        self._rules_for = rules_for
        self.weight_of = weight_of
        self._habits = Habits()
        self._sessions: dict[str, _Session] = {}
        self._to_come: dict[str, float] = {}
        self._of_tenant: dict[str, int] = {}
        self._total_weight = 0.0
        self._served: dict[str, ServiceTime] = {}
        self._ways: dict[str, tuple[dict[str, str], Catalog, _Way]] = {}
        self._visits: dict[tuple[int, StepType, str, float], tuple[Rules, Visit]] = {}

    # ---- sessions -------------------------------------------------------------------------------

    def visits(
        self, session_id: str, workflow: Workflow, *, pins: dict[str, str], catalog: Catalog
    ) -> list[Visit]:
        """The calls that a session of this workflow is expected to make, in their order."""
        digest = workflow.source_digest
        found: list[Visit] = []
        for number, place in self._way(workflow, pins=pins, catalog=catalog):
            if place is not None:
                found.append(self._visit(session_id, number, place=place, share=1.0))
                continue
            for learned, share in self._habits.shares(digest, number).items():
                found.append(self._visit(session_id, number, place=learned, share=share))
        return found

    def _way(self, workflow: Workflow, *, pins: dict[str, str], catalog: Catalog) -> _Way:
        """The steps with the places that are known, the same for sessions of one moment."""
        kept = self._ways.get(workflow.source_digest)
        if kept is not None and kept[0] is pins and kept[1] is catalog:
            return kept[2]
        way: _Way = []
        for number, step in enumerate(workflow.steps):
            pin = pins.get(f"step:{step.name}", "")
            if not pin or step.plan:
                way.append((number, None))
                continue
            offer = catalog.exact(pin)
            kind = step_type(step.role, offer.card.kind if offer else Kind.TOOL)
            way.append((number, Place(pin, kind)))
        if len(self._ways) >= WAYS_MAX:
            self._ways.clear()
        self._ways[workflow.source_digest] = (pins, catalog, way)
        return way

    def _visit(self, session_id: str, step: int, *, place: Place, share: float) -> Visit:
        target = self._targets.pick(place.pin, session_id) if self._targets else None
        if target is None:
            return Visit(step=step, share=share)
        rules, key = self._rules_for(target), (step, place.step_type, target.component_id, share)
        kept = self._visits.get(key)
        if kept is not None and kept[0] is rules:
            return kept[1]
        kind = place.step_type.value
        visit = Visit(
            step=step,
            keys=(f"queue:{kind}", f"instance:{target.component_id}"),
            limits=(rules.queues[kind].limit, rules.target.limit),
            share=share,
        )
        if len(self._visits) >= VISITS_MAX:
            self._visits.clear()
        self._visits[key] = (rules, visit)
        return visit

    def admitted(self, session_id: str, tenant: str, *, digest: str, visits: list[Visit]) -> None:
        """A session was let in."""
        session = _Session(tenant=tenant, digest=digest, visits=visits, used=set())
        self._sessions[session_id] = session
        count = self._of_tenant.get(tenant, 0)
        if not count:
            self._total_weight += self.weight_of(tenant)
        self._of_tenant[tenant] = count + 1
        self._count(visits, 1)

    def reached(
        self, session_id: str, step: int, *, keys: tuple[str, ...], planned: Place | None = None
    ) -> None:
        """A call of this step asks for its slots: it is there, and what came before is over.

        `planned`: where it goes, of a step whose calls a plan decides.
        """
        session = self._sessions.get(session_id)
        if session is None:
            return
        session.position = max(session.position, step)
        if planned is not None:
            session.used.add((step, planned))
        visits = session.visits
        if not visits:
            return
        if visits[0].step == step and visits[0].keys == keys:  # as foreseen: the usual case
            self._count(visits[:1], -1)
            del visits[0]
            return
        here = next((v for v in session.visits if v.step == step and v.keys == keys), None)
        over = [v for v in session.visits if v.step < step or v is here]
        if over:
            self._count(over, -1)
            session.visits = [v for v in session.visits if v.step >= step and v is not here]

    def stands_still(self, session_id: str) -> None:
        """A long operation runs: what comes after it is too far away to stand in anybody's way."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._count(session.visits, -1)
            session.visits = []

    def ended(self, session_id: str) -> None:
        """The session is over: it asks for nothing any more."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        self._count(session.visits, -1)
        self._habits.note(session.digest, session.used, position=session.position)
        left = self._of_tenant[session.tenant] - 1
        if left:
            self._of_tenant[session.tenant] = left
            return
        del self._of_tenant[session.tenant]
        self._total_weight -= self.weight_of(session.tenant)
        if not self._of_tenant:
            self._total_weight = 0.0  # no rest of rounding is carried along for ever

    def crowd(self, tenant: str) -> Crowd:
        """How this tenant's open sessions stand beside all."""
        own, weight = self._of_tenant.get(tenant, 0), self.weight_of(tenant)
        return Crowd(
            own=own,
            total=len(self._sessions),
            weight=weight,
            total_weight=self._total_weight + (0.0 if own else weight),
        )

    def to_come(self, key: str) -> float:
        """Calls of admitted sessions that have not asked for this place yet."""
        return self._to_come.get(key, 0.0)

    def _count(self, visits: list[Visit], sign: int) -> None:
        for visit in visits:
            for key in visit.keys:
                count = self._to_come.get(key, 0.0) + sign * visit.share
                if count > COUNT_MIN:
                    self._to_come[key] = count
                else:
                    self._to_come.pop(key, None)

    # ---- places ---------------------------------------------------------------------------------

    def served(self, keys: tuple[str, ...], held_ms: float, *, well: bool, now_ms: float) -> None:
        """A call held its slots for so long; `well`: it was answered without an error."""
        for key in keys:
            before = self._served.get(key)
            if before is None and len(self._served) >= PLACES_KEPT_MAX:
                del self._served[next(iter(self._served))]
            self._served[key] = served(before or NOTHING_KNOWN, held_ms, well=well, now_ms=now_ms)

    def doubt(self, key: str) -> None:
        """Somebody was refused for its fastest time: believe it less, so that one is tried."""
        if key in self._served:
            self._served[key] = doubted(self._served[key])

    def service(self, key: str) -> ServiceTime:
        """What is known of a place."""
        return self._served.get(key, NOTHING_KNOWN)
