"""Values that no domain knew, kept until a person has looked at them (mission R13).

Bounded: so many per field, so many fields per workflow and tenant; of a full field the value that
was seen least makes room. A row holds a value in plain text and a few session ids; deleting a
session takes its id out, and the value with it if no other session is known to have said it.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from acp_spec.model.semantics import HowMapped, MappedValue
from acp_spec.model.times import rfc3339
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    CallCreated,
    Opened,
    OperationEnded,
    StepEnded,
    SubGoalEnded,
)
from gateway.engine.states import SessionState
from gateway.runtime.clock import Clock
from gateway.runtime.kept_rows import kept_rows
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.tables import text_part
from gateway.telemetry.metrics import Metrics

VALUES_PER_FIELD_MAX: Final = 100
"""More than a person reviews in one sitting; what matters has the higher count."""
FIELDS_MAX: Final = 50
ROWS_MAX: Final = 50_000
SESSIONS_KEPT: Final = 3
INPUT: Final = "input"
_KIND: Final = b"unknown\0"
_DIGEST_BYTES: Final = 16


class Unknown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One value that was refused. `field`: where it was said; `sessions`: the latest few."""

    field: str
    domain: str
    value: str
    count: int = 0
    first_at: str = ""
    last_at: str = ""
    version: str = ""
    sessions: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where values were said: in which workflow version, by whose session, in which field."""

    tenant: str
    workflow: str
    field: str
    session_id: str = ""


Desk = tuple[str, str]
"""(tenant, workflow): whose values a person reviews together."""
Fields = dict[str, dict[str, Unknown]]
"""Rows by field, then by value."""


class UnknownValues:
    """The collected values of one gateway, and an observer of every event."""

    def __init__(self, store: Store, durable: Durable, *, clock: Clock, metrics: Metrics) -> None:
        self._durable = durable
        self._clock = clock
        self._metrics = metrics
        self._rows: dict[Desk, Fields] = {}
        self._said_by: dict[str, set[tuple[Desk, str, str]]] = {}
        self._count = 0
        for key, row in kept_rows(store, _KIND, kind=Unknown):
            tenant, workflow, _ = key.split(b"\0", 2)
            self._remember((tenant.decode(), workflow.decode()), row)

    def __len__(self) -> int:
        return self._count

    # ---- what comes in ---------------------------------------------------------------------------

    @property
    def hears(self) -> frozenset[type]:
        return frozenset(
            {Opened, CallCreated, AttemptEnded, OperationEnded, StepEnded, SubGoalEnded}
        )

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        """Count what an event says of its values, and keep those that were refused."""
        if not getattr(event, "mapped", ()) and not getattr(event, "in_domain", 0):
            return  # as nearly all: few workflows declare domains
        match event:
            case Opened() | CallCreated() | AttemptEnded() | OperationEnded():
                in_domain = event.in_domain
            case StepEnded() | SubGoalEnded():
                in_domain = 0
            case _:
                return
        opened = state.opened
        where = Seen(
            tenant=opened.tenant,
            workflow=opened.workflow,
            field=_field(state, event),
            session_id=opened.session_id,
        )
        self.count(where, event.mapped, in_domain=in_domain)

    def count(self, where: Seen, values: Sequence[MappedValue], *, in_domain: int = 0) -> None:
        """The values of one payload, refused ones too."""
        name, _, version = where.workflow.partition("@")
        if in_domain:
            self._metrics.values_mapped(name, HowMapped.EXACT.value, count=in_domain)
        for value in values:
            self._metrics.values_mapped(name, value.how.value)
            if value.how is HowMapped.REFUSED:
                self._keep(where, value, name=name, version=version)

    def _keep(self, where: Seen, value: MappedValue, *, name: str, version: str) -> None:
        desk, field = (where.tenant, name), where.field + _any_index(value.at)
        before = self._rows.get(desk, {}).get(field, {}).get(value.from_)
        if before is None and not self._room(desk, field):
            return
        now = rfc3339(self._clock.now_ms())
        known = before or Unknown(field=field, domain=value.domain, value=value.from_, first_at=now)
        sessions = known.sessions
        if where.session_id and where.session_id not in sessions:
            sessions = (where.session_id, *sessions)[:SESSIONS_KEPT]
        row = msgspec.structs.replace(
            known,
            domain=value.domain,
            count=known.count + 1,
            last_at=now,
            version=version,
            sessions=sessions,
        )
        self._put(desk, row)

    def _room(self, desk: Desk, field: str) -> bool:
        """Is there room for one more value of this field, if need be by letting one go?"""
        fields = self._rows.get(desk, {})
        if field not in fields and (len(fields) >= FIELDS_MAX or self._count >= ROWS_MAX):
            return False
        rows = fields.get(field, {})
        if len(rows) >= VALUES_PER_FIELD_MAX:
            self._drop(desk, min(rows.values(), key=lambda row: (row.count, row.last_at)))
        return True

    # ---- for who reviews -------------------------------------------------------------------------

    def workflows(self, tenant: str) -> tuple[tuple[str, int], ...]:
        """(workflow, values to look at), by name."""
        mine = (
            (name, sum(map(len, fields.values())))
            for (owner, name), fields in self._rows.items()
            if owner == tenant
        )
        return tuple(sorted(mine))

    def of(self, tenant: str, workflow: str) -> tuple[Unknown, ...]:
        """The values of one workflow, the most frequent first."""
        fields = self._rows.get((tenant, workflow), {}).values()
        every = (row for rows in fields for row in rows.values())
        return tuple(sorted(every, key=lambda row: (-row.count, row.field, row.value)))

    def settle(self, tenant: str, workflow: str, *, domain: str, value: str) -> int:
        """Forget a value that a person has judged, in every field of that domain; how many rows."""
        desk = (tenant, workflow)
        said = [rows.get(value) for rows in self._rows.get(desk, {}).values()]
        found = [row for row in said if row is not None and row.domain == domain]
        for row in found:
            self._drop(desk, row)
        return len(found)

    def forget_session(self, session_id: str) -> None:
        """A deleted session leaves no trace here."""
        for desk, field, value in tuple(self._said_by.get(session_id, ())):
            row = self._rows[desk][field][value]
            left = tuple(one for one in row.sessions if one != session_id)
            if left:
                self._put(desk, msgspec.structs.replace(row, sessions=left))
            else:
                self._drop(desk, row)

    # ---- inside ----------------------------------------------------------------------------------

    def _put(self, desk: Desk, row: Unknown) -> None:
        self._take_out(desk, row.field, value=row.value)
        self._remember(desk, row)
        self._durable.put(Table.GOVERNANCE, _key(desk, row), msgspec.json.encode(row))

    def _drop(self, desk: Desk, row: Unknown) -> None:
        self._take_out(desk, row.field, value=row.value)
        self._durable.delete(Table.GOVERNANCE, _key(desk, row))

    def _remember(self, desk: Desk, row: Unknown) -> None:
        self._rows.setdefault(desk, {}).setdefault(row.field, {})[row.value] = row
        self._count += 1
        for session_id in row.sessions:
            self._said_by.setdefault(session_id, set()).add((desk, row.field, row.value))

    def _take_out(self, desk: Desk, field: str, *, value: str) -> None:
        """Out of memory; what is empty then goes too, so that nothing grows with time."""
        fields = self._rows.get(desk, {})
        rows = fields.get(field, {})
        row = rows.pop(value, None)
        if row is None:
            return
        self._count -= 1
        if not rows:
            del fields[field]
        if not fields:
            del self._rows[desk]
        for session_id in row.sessions:
            named = self._said_by[session_id]
            named.discard((desk, field, value))
            if not named:
                del self._said_by[session_id]


def _field(state: SessionState, event: AnyEvent) -> str:
    """What a person reads: `input`, `output of classify`, `arguments of route`."""
    match event:
        case Opened():
            return INPUT
        case AttemptEnded() | OperationEnded():
            created = state.calls[event.call_id].created
            return f"output of {created.action or created.step}"
        case CallCreated():
            return f"arguments of {event.action}"
        case SubGoalEnded():
            return f"arguments of {_planned_action(state, event)}"
        case StepEnded():
            step = state.workflow.step(event.step) if state.workflow else None
            return f"arguments of {step.action if step else event.step}"
        case _:
            return ""


def _planned_action(state: SessionState, event: SubGoalEnded) -> str:
    step = state.workflow.step(event.step) if state.workflow else None
    plan = state.plan_in(step.plan) if step else None
    goals = plan.sub_goals if plan else ()
    return next((goal.action for goal in goals if goal.id == event.sub_goal), event.step)


def _any_index(pointer: str) -> str:
    """Elements of one list are one field."""
    return "/".join("*" if part.isdigit() else part for part in pointer.split("/"))


def _key(desk: Desk, row: Unknown) -> bytes:
    basis = msgspec.json.encode([row.field, row.value])
    digest = hashlib.sha256(basis).hexdigest()[: _DIGEST_BYTES * 2]
    return _KIND + text_part(desk[0]) + text_part(desk[1]) + digest.encode()
