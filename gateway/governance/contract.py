"""A workflow's contract (R14): what goes in, what comes out, what is demanded, what is allowed.

It stands inline in the workflow as `contract:`, or in a `contract.yaml` beside it, which
`acp workflows put` writes into it. Each section is a module with a frozen value and
`read(reader, found)`; every fault is noted with its line and column, none raises.
"""

import enum
from dataclasses import dataclass, field
from typing import Final

from acp_spec.codec.schema_check import compile_schema
from acp_spec.codec.yaml_tree import Mapping, Scalar, ScalarKind, json_text, read_tree
from acp_spec.model.payload import payload
from acp_spec.model.session import Problem
from gateway.expressions.field_reader import Field, FieldReader
from gateway.governance import (
    action_rates,
    business_fallback,
    plan_guard,
    sandbox_demands,
    semantics,
    sla,
)
from gateway.governance.action_rates import ActionRates
from gateway.governance.business_fallback import BusinessFallback
from gateway.governance.plan_guard import NO_GUARD, PlanGuard
from gateway.governance.sandbox_demands import SandboxDemands
from gateway.governance.semantics import Semantics
from gateway.governance.sla import Sla

KEYS: Final = (
    "workflow", "description", "input_schema", "output_schema", "on_output_breach", "sla",
    "semantics", "fallback", "allowed_actions", "plan", "sandbox", "rates",
)  # fmt: skip
LEFT_OUT: Final = "..."
"""`contract: {...}`, as the protocol prints a workflow: something stands there, never mind what."""
WORKFLOW_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
# A name, or the beginning of names: `rates.*`.
ALLOWED_ACTION: Final = r"[^\s\x00-\x1f*]{0,127}\*|[^\s\x00-\x1f*]{1,128}"
ALLOWED_ACTIONS_MAX: Final = 1_000


class OnOutputBreach(enum.Enum):
    """What an output that breaks `output_schema` does: the session fails, or it falls back."""

    FAIL = "FAIL"
    FALLBACK = "FALLBACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A whole contract. Empty schemas check nothing; `allowed_actions` None allows every action.

    `workflow`: whose contract it is, as the file says; empty where it stands inline.
    """

    workflow: str = ""
    description: str = ""
    input_schema: bytes = b""
    output_schema: bytes = b""
    on_output_breach: OnOutputBreach = OnOutputBreach.FAIL
    sla: tuple[Sla, ...] = ()
    semantics: Semantics | None = None
    fallback: BusinessFallback | None = None
    allowed_actions: tuple[str, ...] | None = None
    plan: PlanGuard = NO_GUARD
    sandbox: SandboxDemands | None = None
    rates: ActionRates = field(default_factory=dict)

    def sla_of(self, component: str) -> Sla | None:
        """The demands on this component, if there are any."""
        return next((one for one in self.sla if one.component == component), None)

    def allows(self, action: str) -> bool:
        """May this action be called under the contract?"""
        return self.allowed_actions is None or any(
            action.startswith(allowed[:-1]) if allowed.endswith("*") else action == allowed
            for allowed in self.allowed_actions
        )


NO_CONTRACT: Final = Contract()
"""Of a workflow without one: nothing is checked, everything is allowed."""


def parse_contract(text: bytes) -> Contract | tuple[Problem, ...]:
    """The contract in a file of its own, or all problems in the order of the file."""
    reading = read_tree(text)
    reader = FieldReader()
    reader.take(reading.faults)
    contract = NO_CONTRACT
    if reading.tree is not None:
        contract = read_contract(reader, Field("", reading.tree.place, reading.tree))
    if reading.tree is None or reader.problems:
        return tuple(sorted(reader.problems, key=lambda p: (p.line, p.column)))
    return contract


def read_contract(reader: FieldReader, found: Field) -> Contract:
    """The contract in a field of a workflow, or in a whole file (`found.path` empty)."""
    value = found.value
    if isinstance(value, Scalar) and value.kind is ScalarKind.TEXT:
        reader.fault(
            found,
            f"{value.text!r} names a file: `acp workflows put` writes it into the workflow; over"
            " the API the contract stands here itself",
        )
        return NO_CONTRACT
    if isinstance(value, Mapping) and [entry.key.text for entry in value.entries] == [LEFT_OUT]:
        return NO_CONTRACT
    if not isinstance(value, Mapping):
        reader.fault(found, f"a contract is an object with some of {', '.join(KEYS)}")
        return NO_CONTRACT
    fields = reader.fields(value, found.path, known=KEYS)
    return Contract(
        workflow=reader.text(fields.get("workflow"), pattern=WORKFLOW_NAME, advice="a name"),
        description=reader.text(fields.get("description")),
        input_schema=_schema(reader, fields.get("input_schema")),
        output_schema=_schema(reader, fields.get("output_schema")),
        on_output_breach=reader.choice(fields.get("on_output_breach"), OnOutputBreach)
        or OnOutputBreach.FAIL,
        sla=sla.read(reader, fields["sla"]) if "sla" in fields else (),
        semantics=semantics.read(reader, fields["semantics"]) if "semantics" in fields else None,
        fallback=business_fallback.read(reader, fields["fallback"])
        if "fallback" in fields
        else None,
        allowed_actions=_allowed(reader, fields.get("allowed_actions")),
        plan=plan_guard.read(reader, fields["plan"]) if "plan" in fields else NO_GUARD,
        sandbox=sandbox_demands.read(reader, fields["sandbox"]) if "sandbox" in fields else None,
        rates=action_rates.read(reader, fields["rates"]) if "rates" in fields else {},
    )


def _schema(reader: FieldReader, found: Field | None) -> bytes:
    """A JSON Schema (2020-12) as its text, compiled once to see that it can be."""
    if found is None:
        return b""
    is_boolean = isinstance(found.value, Scalar) and found.value.kind is ScalarKind.BOOLEAN
    if not is_boolean and not isinstance(found.value, Mapping):
        reader.fault(found, "a JSON Schema is an object, or true or false")
        return b""
    text = json_text(found.value)
    compiled = compile_schema(payload(text))
    if isinstance(compiled, str):
        reader.fault(found, f"this is not a JSON Schema that can be used: {compiled}")
    return text


def _allowed(reader: FieldReader, found: Field | None) -> tuple[str, ...] | None:
    if found is None:
        return None
    items = reader.items(found.value, found.path)
    if len(items) > ALLOWED_ACTIONS_MAX:
        reader.fault(found, f"at most {ALLOWED_ACTIONS_MAX} actions can be listed")
        items = items[:ALLOWED_ACTIONS_MAX]
    advice = "an action's name, or the beginning of names such as 'rates.*'"
    places = (Field(f"{found.path}[{i}]", tree.place, tree) for i, tree in enumerate(items))
    return tuple(reader.text(each, pattern=ALLOWED_ACTION, advice=advice) for each in places)
