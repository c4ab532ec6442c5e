"""Reads the steps of a workflow file: their fields, and how they refer to each other.

Which keys a step may have depends on its role; the tables below say so, and each key that does not
fit is a problem at its place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from acp_spec.codec.yaml_tree import Mapping as MappingTree
from acp_spec.codec.yaml_tree import Place, Scalar, ScalarKind, Sequence, Tree, json_text
from acp_spec.model.enums import StepRole, Verdict
from acp_spec.model.semver import VersionError, split_name
from gateway.engine.definition import (
    Condition,
    Mapping,
    OnError,
    PinMode,
    Recovery,
    Require,
    Step,
)
from gateway.engine.policies import policy_problem
from gateway.engine.workflow_names import OWN_NAMES, RESERVED, RESPONSE_FIELDS, Names
from gateway.expressions.expression import Expression
from gateway.expressions.field_reader import Field, FieldReader, hint

MAX_STEPS: Final = 100
# A week: longer waits are operations, whose time stands still.
MAX_DURATION_MS: Final = 7 * 24 * 3600 * 1000
STEP_NAME: Final = r"[a-z][a-z0-9_]{0,63}"
COMPONENT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}"
ACTION_NAME: Final = r"[^\s\x00-\x1f]{1,128}"
VARIABLE_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,63}"

KEYS: Final = (
    "name", "role", "description", "component", "plan", "action", "condition", "input_mapping",
    "output_mapping", "on", "on_error", "require", "recovery", "pin", "timeout_ms", "repeat",
)  # fmt: skip
# Request fields that a mapping may fill; for one action the mapping fills `arguments` freely.
REQUEST_FIELDS: Final = {
    StepRole.PLAN: (
        "goal", "input", "actions", "memory", "calls", "previous_plan", "critique", "limits",
    ),
    StepRole.OBSERVE: ("observations", "recall"),
    StepRole.REFLECT: ("goal", "plan", "calls", "draft"),
}  # fmt: skip
# The verdicts that go back to a step; the others end the session.
BACKWARD: Final = (Verdict.REPLAN, Verdict.RETRY)
# key -> the roles it has a meaning for (all others: every role).
ONLY_FOR: Final = {
    "plan": (StepRole.EXECUTE,),
    "action": (StepRole.EXECUTE,),
    "require": (StepRole.EXECUTE,),
    "repeat": (StepRole.EXECUTE,),
    "on": (StepRole.REFLECT,),
}


@dataclass(frozen=True, slots=True)
class _Outline:
    """What other steps need to know of a step before it is read."""

    name: str
    role: StepRole | None
    fields: dict[str, Field]
    path: str
    place: Place


def read_steps(reader: FieldReader, found: Field | None) -> tuple[tuple[Step, ...], Names]:
    """All steps in order, and the names that an expression at the end of the workflow may use."""
    trees = () if found is None else reader.items(found.value, found.path)
    if found is not None and isinstance(found.value, Sequence) and not 1 <= len(trees) <= MAX_STEPS:
        message = f"a workflow has 1 to {MAX_STEPS} steps, this one has {len(trees)}"
        reader.fault(found, message)
        trees = trees[:MAX_STEPS]
    outlines = [_outline(reader, tree, path=f"steps[{i}]") for i, tree in enumerate(trees)]
    _check_unique(reader, outlines)
    variables = frozenset(
        variable for outline in outlines for variable in _variables(outline.fields)
    )
    steps = []
    for place, outline in enumerate(outlines):
        before = outlines[:place]
        names = _names(before, outlines[place:], variables=variables)
        steps.append(_StepReader(reader, outline, before, names).step())
    return tuple(steps), _names(outlines, (), variables=variables)


def read_recovery(reader: FieldReader, found: Field) -> Recovery | None:
    """`{policy: name, <parameters of that policy>}`."""
    fields = reader.fields(found.value, found.path, known=None)
    if not isinstance(found.value, MappingTree):
        return None
    if "policy" not in fields:
        reader.fault(found, "name a policy, such as {policy: backoff}")
        return None
    policy = reader.text(fields["policy"], pattern=COMPONENT_NAME, advice="a policy's name")
    entries = tuple(entry for entry in found.value.entries if entry.key.text != "policy")
    params = json_text(MappingTree(entries, found.place))
    problem = policy_problem(policy, params) if policy else None
    if problem is not None:
        reader.fault(fields["policy"], problem)
    return Recovery(policy=policy, params=params)


def _outline(reader: FieldReader, tree: Tree, *, path: str) -> _Outline:
    fields = reader.fields(tree, path, known=KEYS)
    if isinstance(tree, MappingTree):
        for required in ("name", "role"):
            if tree.get(required) is None:
                reader.problem(
                    tree.place, f"{path}.{required}", message=f"the key {required!r} is missing"
                )
    advice = "a step's name: small letters, digits and '_', beginning with a letter"
    name = reader.text(fields.get("name"), pattern=STEP_NAME, advice=advice)
    if name in RESERVED:
        reader.fault(
            fields["name"],
            f"{name!r} means something else in expressions",
        )
    return _Outline(name, reader.choice(fields.get("role"), StepRole), fields, path, tree.place)


def _check_unique(reader: FieldReader, outlines: Iterable[_Outline]) -> None:
    seen: dict[str, int] = {}
    for outline in outlines:
        if not outline.name:
            continue
        name = outline.fields["name"]
        if outline.name in seen:
            message = f"the name {outline.name!r} is already used in line {seen[outline.name]}"
            reader.fault(name, message)
        seen.setdefault(outline.name, name.place.line)


def _variables(fields: dict[str, Field]) -> tuple[str, ...]:
    found = fields.get("output_mapping")
    if found is None or not isinstance(found.value, MappingTree):
        return ()
    return tuple(entry.key.text for entry in found.value.entries)


def _names(
    before: Iterable[_Outline], later: Iterable[_Outline], *, variables: frozenset[str]
) -> Names:
    return Names(
        steps={outline.name: outline.role for outline in before if outline.name},
        later=frozenset(outline.name for outline in later if outline.name),
        variables=variables,
    )


@dataclass(frozen=True, slots=True)
class _StepReader:
    """Reads one step; `before` are the steps it may refer to."""

    reader: FieldReader
    outline: _Outline
    before: list[_Outline]
    names: Names

    def step(self) -> Step:
        reader, fields, outline = self.reader, self.outline.fields, self.outline
        self.check_keys()
        component, version_range = self.component()
        recovery = fields.get("recovery")
        return Step(
            name=outline.name,
            role=outline.role or StepRole.EXECUTE,
            description=reader.text(fields.get("description")),
            component=component,
            version_range=version_range,
            plan=self.plan(),
            action=reader.text(
                fields.get("action"), pattern=ACTION_NAME, advice="an action's name"
            ),
            condition=self.condition(),
            input_mapping=self.input_mapping(),
            output_mapping=self.output_mapping(),
            on=self.on(),
            on_error=reader.choice(fields.get("on_error"), OnError) or OnError.FAIL,
            require=reader.choice(fields.get("require"), Require) or Require.ANY,
            recovery=None if recovery is None else read_recovery(reader, recovery),
            pin=reader.choice(fields.get("pin"), PinMode),
            timeout_ms=reader.integer(fields.get("timeout_ms"), 0, least=1, most=MAX_DURATION_MS),
            repeat=reader.boolean(fields.get("repeat")),
            line=outline.place.line,
            column=outline.place.column,
        )

    def check_keys(self) -> None:
        """Keys that have no meaning for this role, and the choice between plan and action."""
        fields, role = self.outline.fields, self.outline.role
        if role is None:
            return
        for key, roles in ONLY_FOR.items():
            if key in fields and role not in roles:
                self.misplaced(fields[key], f"{key!r} is for {roles[0].value.lower()} steps only")
        if role is not StepRole.EXECUTE:
            return
        if "plan" in fields and "action" in fields:
            self.misplaced(fields["action"], "an execute step has a plan or an action, not both")
        elif "plan" not in fields and "action" not in fields:
            message = "an execute step needs 'plan' (an earlier plan step) or 'action'"
            self.reader.problem(self.outline.place, self.outline.path, message=message)
        if "require" in fields and "plan" not in fields:
            self.misplaced(fields["require"], "'require' is for execute steps over a plan only")
        if "repeat" in fields and "plan" in fields:
            self.misplaced(fields["repeat"], "over a plan, each sub-goal says 'repeat' itself")

    def misplaced(self, found: Field, message: str) -> None:
        """A problem with a key, not with its value."""
        self.reader.problem(found.key, found.path, message=message)

    def component(self) -> tuple[str, str]:
        found = self.outline.fields.get("component")
        text = self.reader.text(found)
        if found is None or not text:
            return "", ""
        try:
            name, version_range = split_name(text)
        except VersionError as error:
            self.reader.fault(found, str(error))
            return "", ""
        advice = "a component's name, or name@range such as fees@^1.2"
        name_field = Field(found.path, found.key, _renamed(found.value, name))
        return self.reader.text(name_field, pattern=COMPONENT_NAME, advice=advice), version_range

    def plan(self) -> str:
        found = self.outline.fields.get("plan")
        text = self.reader.text(found)
        if found is None or not text:
            return ""
        return self.earlier(found, text, role=StepRole.PLAN)

    def earlier(self, found: Field, name: str, *, role: StepRole | None) -> str:
        """The name, if it is that of an earlier step (of this role)."""
        roles = {outline.name: outline.role for outline in self.before}
        if name in roles:
            if role is None or roles[name] in (role, None):
                return name
            message = f"the step {name!r} is not a {role.value.lower()} step"
        elif name in self.names.later:
            message = f"the step {name!r} does not come before this one"
        else:
            wanted = [n for n, r in roles.items() if n and (role is None or r is role)]
            message = f"there is no step {name!r}" + hint(name, wanted)
        self.reader.fault(found, message)
        return ""

    def condition(self) -> Condition | None:
        found = self.outline.fields.get("condition")
        if found is None:
            return None
        expression = self.expression(found, self.names)
        if expression is None:
            return None
        if not expression.paths and expression.text not in ("true", "false"):
            self.reader.fault(found, "this condition names nothing")
        return Condition(expression=expression, line=found.place.line, column=found.place.column)

    def input_mapping(self) -> tuple[Mapping, ...]:
        fields, role = self.outline.fields, self.outline.role
        found = fields.get("input_mapping")
        if found is None:
            return ()
        if role is StepRole.EXECUTE and "plan" in fields:
            self.misplaced(found, "over a plan, arguments come from the plan: remove input_mapping")
            return ()
        known = REQUEST_FIELDS.get(role) if role is not None else None
        return self.mappings(found, known, names=self.names)

    def output_mapping(self) -> tuple[Mapping, ...]:
        found = self.outline.fields.get("output_mapping")
        if found is None:
            return ()
        own, role = set(OWN_NAMES), self.outline.role
        if role is not None:
            own |= RESPONSE_FIELDS[role]
        names = Names(
            steps={**self.names.steps, self.outline.name: role},
            later=self.names.later - {self.outline.name},
            variables=self.names.variables,
            own=frozenset(own),
        )
        for entry in found.value.entries if isinstance(found.value, MappingTree) else ():
            at = Field(f"{found.path}.{entry.key.text}", entry.key.place, entry.key)
            self.reader.text(at, pattern=VARIABLE_NAME, advice="a variable's name")
        return self.mappings(found, None, names=names)

    def mappings(
        self, found: Field, known: Iterable[str] | None, *, names: Names
    ) -> tuple[Mapping, ...]:
        mappings = []
        for key, value in self.reader.fields(found.value, found.path, known=known).items():
            expression = self.expression(value, names)
            if expression is not None:
                place = value.place
                mappings.append(
                    Mapping(field=key, expression=expression, line=place.line, column=place.column)
                )
        return tuple(mappings)

    def expression(self, found: Field, names: Names) -> Expression | None:
        expression = self.reader.expression(found)
        if expression is not None:
            names.check(self.reader, found, expression=expression)
        return expression

    def on(self) -> tuple[tuple[Verdict, str], ...]:
        found = self.outline.fields.get("on")
        if found is None:
            return ()
        targets = []
        for key, target in self.reader.fields(found.value, found.path, known=None).items():
            named = Field(target.path, target.key, Scalar(key, ScalarKind.TEXT, target.key))
            verdict = self.reader.choice(named, Verdict)
            if verdict is not None and verdict not in BACKWARD:
                back = " and ".join(v.value for v in BACKWARD)
                self.misplaced(
                    target, f"{verdict.value} ends the session; {back} go back to a step"
                )
            step = self.reader.text(target)
            if step:
                step = self.earlier(target, step, role=None)
            if verdict is not None and step:
                targets.append((verdict, step))
        return tuple(targets)


def _renamed(value: Tree, text: str) -> Tree:
    return Scalar(text, value.kind, value.place) if isinstance(value, Scalar) else value
