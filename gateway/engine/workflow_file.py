"""From the text of a workflow file to a validated `Workflow`, or to everything that is wrong in it.

The least that every gateway reads is protocol section 8. Pure: no component is asked whether it
exists (that is `workflow_advice`, which knows the catalog). Problems are sorted by their place.
"""

import dataclasses
import hashlib
from typing import Final

from acp_spec.codec.yaml_tree import Mapping as MappingTree
from acp_spec.codec.yaml_tree import Place, Tree, read_tree
from acp_spec.model.semver import VersionError, parse
from acp_spec.model.session import Problem
from gateway.engine.definition import (
    Fallback,
    Limits,
    Mapping,
    PinMode,
    Recovery,
    Workflow,
)
from gateway.engine.workflow_contract import CONTRACT, check_contract
from gateway.engine.workflow_names import Names
from gateway.engine.workflow_step import MAX_DURATION_MS, read_recovery, read_steps
from gateway.expressions.field_reader import Field, FieldReader
from gateway.governance.contract import NO_CONTRACT, read_contract

MAX_LOOPS: Final = 100
MAX_SUB_GOALS: Final = 1000
NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

KEYS: Final = (
    "workflow", "version", "description", CONTRACT, "steps", "output", "limits", "recovery",
    "fallback", "pin",
)  # fmt: skip
LIMIT_KEYS: Final = ("max_loops", "max_sub_goals", "deadline_ms")


def parse_workflow(text: bytes) -> Workflow | tuple[Problem, ...]:
    """The workflow in `text` (YAML or JSON), or all problems in the order of the file."""
    workflow, problems = _read(text)
    return problems if workflow is None or problems else workflow


def parse_stored(text: bytes) -> tuple[Workflow, tuple[Problem, ...]]:
    """A version that was stored when it was good, and what is ignored of it now.

    Before contracts were read `contract:` could hold anything. What is no contract now is left out,
    because sessions of that version must go on; whoever asks has to say so loudly.
    """
    workflow, problems = _read(text)
    others = [problem for problem in problems if problem.path.partition(".")[0] != CONTRACT]
    assert workflow is not None, "it was valid when it was stored"
    assert not others, f"it was valid when it was stored: {others[0]}"
    return dataclasses.replace(workflow, contract=NO_CONTRACT) if problems else workflow, problems


def _read(text: bytes) -> tuple[Workflow | None, tuple[Problem, ...]]:
    reading = read_tree(text)
    reader = FieldReader()
    reader.take(reading.faults)
    workflow = None
    if reading.tree is not None:
        digest = hashlib.sha256(text).hexdigest()
        workflow = _workflow(reader, reading.tree, digest=digest)
    return workflow, tuple(sorted(reader.problems, key=lambda p: (p.line, p.column)))


def _workflow(reader: FieldReader, tree: Tree, *, digest: str) -> Workflow | None:
    fields = reader.fields(tree, "", known=KEYS)
    if not isinstance(tree, MappingTree):
        return None
    for required in ("workflow", "version", "steps"):
        if tree.get(required) is None:
            reader.problem(tree.place, required, message=f"the key {required!r} is missing")
    steps, names = read_steps(reader, fields.get("steps"))
    found = fields.get(CONTRACT)
    workflow = Workflow(
        name=_name(reader, fields.get("workflow")),
        version=_version(reader, fields.get("version")),
        steps=steps,
        output=_mapping(reader, fields.get("output"), names=names),
        limits=_limits(reader, fields.get("limits")),
        recovery=_recovery(reader, fields),
        fallback=_fallback(reader, fields.get("fallback"), names=names),
        pin=reader.choice(fields.get("pin"), PinMode) or PinMode.PREFER,
        contract=NO_CONTRACT if found is None else read_contract(reader, found),
        description=reader.text(fields.get("description")),
        source_digest=digest,
    )
    if found is not None:
        check_contract(reader, found, workflow=workflow)
    return workflow


def _name(reader: FieldReader, found: Field | None) -> str:
    advice = "a name: letters, digits, '.', '_' and '-', at most 64"
    return reader.text(found, pattern=NAME_PATTERN, advice=advice)


def _version(reader: FieldReader, found: Field | None) -> str:
    text = reader.text(found)
    if found is None or not text:
        return ""
    try:
        return str(parse(text))
    except VersionError as error:
        reader.fault(found, str(error))
        return ""


def _limits(reader: FieldReader, found: Field | None) -> Limits:
    if found is None:
        return Limits()
    fields = reader.fields(found.value, found.path, known=LIMIT_KEYS)
    default = Limits()
    return Limits(
        max_loops=reader.integer(
            fields.get("max_loops"), default.max_loops, least=0, most=MAX_LOOPS
        ),
        max_sub_goals=reader.integer(
            fields.get("max_sub_goals"), default.max_sub_goals, least=1, most=MAX_SUB_GOALS
        ),
        deadline_ms=reader.integer(
            fields.get("deadline_ms"), default.deadline_ms, least=1, most=MAX_DURATION_MS
        ),
    )


def _recovery(reader: FieldReader, fields: dict[str, Field]) -> Recovery | None:
    found = fields.get("recovery")
    return None if found is None else read_recovery(reader, found)


def _fallback(reader: FieldReader, found: Field | None, *, names: Names) -> Fallback | None:
    if found is None:
        return None
    fields = reader.fields(found.value, found.path, known=("output",))
    output = _mapping(reader, fields.get("output"), names=names)
    if output is None:
        if "output" not in fields:
            reader.fault(found, "write fallback: {output: ...}")
        return None
    return Fallback(output=output)


def _mapping(reader: FieldReader, found: Field | None, *, names: Names) -> Mapping | None:
    """An expression that may name every step."""
    if found is None:
        return None
    expression = reader.expression(found)
    if expression is None:
        return None
    names.check(reader, found, expression=expression)
    place: Place = found.place
    return Mapping(field="output", expression=expression, line=place.line, column=place.column)
