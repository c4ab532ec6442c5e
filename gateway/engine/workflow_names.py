"""Which names an expression of a workflow may use at its place, and advice for the others."""

from dataclasses import dataclass, field
from typing import Final

from acp_spec.codec.yaml_tree import Scalar
from acp_spec.model.enums import StepRole
from gateway.expressions.expression import Expression, Path
from gateway.expressions.field_reader import Field, FieldReader, closest, hint

GLOBAL_NAMES: Final = ("input", "session", "vars", "memory", "signals")
# In an output mapping these are the step's own; other response fields depend on its role.
OWN_NAMES: Final = ("output", "status", "results", "error")
RESERVED: Final = frozenset({*GLOBAL_NAMES, *OWN_NAMES, "true", "false", "null", "in", "has"})
STEP_FIELDS: Final = frozenset(OWN_NAMES)
RESPONSE_FIELDS: Final = {
    StepRole.PLAN: frozenset({"plan", "confidence", "rationale"}),
    StepRole.EXECUTE: frozenset({"side_effect"}),
    StepRole.OBSERVE: frozenset({"stored", "memory"}),
    StepRole.REFLECT: frozenset({"verdict", "critique", "retry_call_ids", "rewards", "claims"}),
}


@dataclass(frozen=True, slots=True)
class Names:
    """What may be named: steps that come before with their roles, and variables that are written.

    `later` are the steps that exist but do not come before; `own` the names of an output mapping.
    """

    steps: dict[str, StepRole | None]
    later: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    own: frozenset[str] = field(default_factory=frozenset)

    def check(self, reader: FieldReader, found: Field, *, expression: Expression) -> None:
        """Note a problem for every name that does not exist here."""
        for path in expression.paths:
            message = self._fault(path)
            if message:
                value = found.value
                place = value.at(path.column) if isinstance(value, Scalar) else found.place
                reader.problem(place, found.path, message=message)

    def _fault(self, path: Path) -> str:
        root, first = path.root, path.parts[0] if path.parts else ""
        if root in self.steps:
            return self._step_fault(root, first)
        if root in self.own:
            return ""
        if root == "vars" and isinstance(first, str) and first:
            if first in self.variables:
                return ""
            return f"no output_mapping writes vars.{first}" + hint(first, self.variables)
        if root in GLOBAL_NAMES:
            return ""
        if root in self.later:
            return f"the step {root!r} does not come before: only earlier steps can be named"
        known = (*GLOBAL_NAMES, *self.steps, *self.own)
        near = closest(root, known)
        advice = f"; did you mean {near!r}?" if near else ""
        return f"unknown name {root!r}{advice}; known here: {', '.join(sorted(known))}"

    def _step_fault(self, root: str, first: str | int) -> str:
        """Only what looks like a typo: a later version of the protocol may add fields."""
        role = self.steps[root]
        known = STEP_FIELDS | (RESPONSE_FIELDS[role] if role is not None else frozenset())
        if not isinstance(first, str) or not first or first in known:
            return ""
        near = closest(first, known)
        return f"{root!r} has no field {first!r}; did you mean {near!r}?" if near else ""
