"""Cases of a contract: inputs, and what must come of them; read from YAML with lines and columns.

A case names its input and what is expected: a status, an output (equal as JSON), an error's reason,
whether it fell back, and conditions in CEL over `input`, `output`, `status`, `fell_back`, `error`.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.codec.json import encode
from acp_spec.codec.json_text import CanonicalError, canonical
from acp_spec.codec.yaml_tree import Scalar, ScalarKind, Sequence, Tree, json_text, read_tree
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload, is_absent, payload
from acp_spec.model.session import Problem
from gateway.expressions.expression import Expression, ExpressionError
from gateway.expressions.field_reader import Field, FieldReader, hint

CASES_MAX: Final = 1_000
KEYS: Final = ("name", "input", "deadline_ms", "expect")
EXPECT_KEYS: Final = ("status", "output", "error", "fell_back", "that")
NAMES: Final = ("input", "output", "status", "fell_back", "error")
DEADLINE_MS_MAX: Final = 600_000
SHOWN_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must come of a case; None and empty expect nothing."""

    status: SessionStatus | None = None
    output: bytes = b""
    error: str = ""
    fell_back: bool | None = None
    that: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input with what must come of it."""

    name: str
    given: Payload
    expected: Expected
    deadline_ms: int = 0
    line: int = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. Without a status the gateway refused to open it, with `error`."""

    status: SessionStatus | None = None
    output: Payload = ABSENT
    error: AcpError | None = None
    fell_back: bool = False
    session_id: str = ""


def read_cases(text: bytes) -> tuple[tuple[Case, ...], tuple[Problem, ...]]:
    """The cases of a file, and all that is wrong in it."""
    reading = read_tree(text)
    reader = FieldReader()
    reader.take(reading.faults)
    trees = () if reading.tree is None else reader.items(reading.tree, "")
    if isinstance(reading.tree, Sequence) and not 1 <= len(trees) <= CASES_MAX:
        message = f"a file of cases has 1 to {CASES_MAX}, this one has {len(trees)}"
        reader.problem(reading.tree.place, "", message=message)
    cases = tuple(_case(reader, tree, number=i) for i, tree in enumerate(trees[:CASES_MAX]))
    return cases, tuple(sorted(reader.problems, key=lambda p: (p.line, p.column)))


def _case(reader: FieldReader, tree: Tree, *, number: int) -> Case:
    path = f"[{number}]"
    fields = reader.fields(tree, path, known=KEYS)
    if "expect" not in fields:
        reader.problem(tree.place, path, message="say what is expected: `expect: {output: ...}`")
    given = fields.get("input")
    return Case(
        name=reader.text(fields.get("name")) or f"case {number + 1}",
        given=payload(json_text(given.value) if given else b"null"),
        expected=_expected(reader, fields.get("expect")),
        deadline_ms=reader.integer(fields.get("deadline_ms"), 0, least=1, most=DEADLINE_MS_MAX),
        line=tree.place.line,
    )


def _expected(reader: FieldReader, found: Field | None) -> Expected:
    if found is None:
        return Expected()
    fields = reader.fields(found.value, found.path, known=EXPECT_KEYS)
    if not fields:
        reader.fault(found, f"this expects nothing: state one of {', '.join(EXPECT_KEYS)}")
    error, output = reader.text(fields.get("error")), fields.get("output")
    status = reader.choice(fields.get("status"), SessionStatus)
    if status is None and not error:
        status = SessionStatus.SUCCEEDED
    return Expected(
        status=status,
        output=json_text(output.value) if output else b"",
        error=error,
        fell_back=reader.boolean(fields["fell_back"]) if "fell_back" in fields else None,
        that=_conditions(reader, fields.get("that")),
    )


def _conditions(reader: FieldReader, found: Field | None) -> tuple[Expression, ...]:
    """One condition, or a list of them."""
    if found is None:
        return ()
    is_one = isinstance(found.value, Scalar) and found.value.kind is ScalarKind.TEXT
    trees = (found.value,) if is_one else reader.items(found.value, found.path)
    conditions = []
    for index, tree in enumerate(trees):
        at = Field(found.path if is_one else f"{found.path}[{index}]", tree.place, tree)
        expression = reader.expression(at)
        for path in expression.paths if expression else ():
            if path.root not in NAMES:
                reader.fault(at, f"unknown name {path.root!r}{hint(path.root, NAMES)}")
        if expression is not None:
            conditions.append(expression)
    return tuple(conditions)


def faults_of(case: Case, outcome: Outcome) -> list[str]:
    """What came otherwise than expected, a sentence each; empty when all is as expected."""
    expected, faults = case.expected, []
    why = f" ({outcome.error.reason}: {outcome.error.message})" if outcome.error else ""
    reason = outcome.error.reason if outcome.error else "no error"
    status = outcome.status.value if outcome.status else "not opened"
    if expected.status is not None and expected.status is not outcome.status:
        faults.append(f"it is {status}, not {expected.status.value}{why}")
    if expected.error and expected.error != reason:
        faults.append(f"the error is {reason}, not {expected.error}{why}")
    if expected.fell_back is not None and expected.fell_back is not outcome.fell_back:
        faults.append("it fell back" if outcome.fell_back else "it did not fall back")
    output = b"null" if is_absent(outcome.output) else bytes(outcome.output)
    if expected.output and _canonical(expected.output) != _canonical(output):
        faults.append(f"the output is {_shown(output)}, not {_shown(expected.output)}")
    return [*faults, *_broken_conditions(case, outcome, output=output)]


def _broken_conditions(case: Case, outcome: Outcome, *, output: bytes) -> list[str]:
    scope = {
        "input": bytes(case.given),
        "output": output,
        "status": msgspec.json.encode(outcome.status),
        "fell_back": msgspec.json.encode(outcome.fell_back),
        "error": b"null" if outcome.error is None else encode(outcome.error),
    }
    faults = []
    for condition in case.expected.that:
        try:
            if not condition.evaluate_bool(scope):
                faults.append(f"{condition.text} does not hold; the output is {_shown(output)}")
        except ExpressionError as problem:
            faults.append(f"{condition.text} cannot be evaluated: {problem}")
    return faults


def _canonical(text: bytes) -> bytes:
    """Equal for equal JSON values; as it is where it has no canonical form."""
    try:
        return canonical(msgspec.json.decode(text))
    except (CanonicalError, msgspec.DecodeError):
        return text


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= SHOWN_CHARACTERS_MAX else shown[:SHOWN_CHARACTERS_MAX] + "..."
