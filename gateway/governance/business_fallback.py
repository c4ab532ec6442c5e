"""The contract's section `fallback` (R15): bounded decisions over the input, asked in order.

    fallback:
      version: "7"                  # stands in each record; left out: the rules' digest
      after_failures: 5
      probe_every: 10
      return_after: 3
      counts: [TIMEOUT, UNAVAILABLE]  # left out: every failure that is not the client's
      rules:
        - {name: small, when: "input.amount_cents < 10000", output: {decision: accept}}
        - {name: rest, output: "{'decision': 'refer', 'to': input.branch}"}
      drill:
        every_ms: 3600000
        keep: 20                    # inputs of real sessions that a drill answers again
        inputs: [{input: {amount_cents: 5}, rule: small, output: {decision: accept}}]

The first rule whose `when` holds answers; the last one has none, so that there always is an answer.
A rule that fails to evaluate fails the session: skipping it would let the next one decide a case
that its author had excluded. Nothing here calls anybody.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.yaml_tree import Mapping, Scalar, ScalarKind, json_text
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import ABSENT, Payload, payload
from gateway.expressions.expression import Expression, ExpressionError
from gateway.expressions.field_reader import Field, FieldReader, hint
from gateway.governance.fallback_track import (
    AFTER_FAILURES,
    FELL_BACK,
    PROBE_EVERY,
    RETURN_AFTER,
    Terms,
)

RULES_MAX: Final = 50
INPUTS_MAX: Final = 100
KEEP_DEFAULT: Final = 20
KEEP_MAX: Final = 200
EVERY_MS_DEFAULT: Final = 3_600_000
EVERY_MS_LEAST: Final = 1_000
EVERY_MS_MOST: Final = 7 * 24 * 3_600_000
THRESHOLD_MOST: Final = 1_000
NAMES: Final = ("input", "session")
RULE_NAME: Final = r"[a-z][a-z0-9_]{0,63}"
VERSION_TEXT: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
DIGEST_SHOWN: Final = 12

KEYS: Final = (
    "version", "after_failures", "probe_every", "return_after", "counts", "rules", "drill",
)  # fmt: skip
RULE_KEYS: Final = ("name", "description", "when", "output")
DRILL_KEYS: Final = ("every_ms", "keep", "inputs")
INPUT_KEYS: Final = ("input", "rule", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackRule:
    """One decision; `when` None: always."""

    name: str
    when: Expression | None
    output: Expression
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillInput:
    """An input given in the contract, and what must come of it (empty: anything that works)."""

    input: bytes
    rule: str = ""
    output: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """How often the rules are tried, and on what."""

    every_ms: int = EVERY_MS_DEFAULT
    keep: int = KEEP_DEFAULT
    inputs: tuple[DrillInput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessFallback:
    """The `fallback` of a contract, complete. `counts` None: the default rule."""

    version: str
    rules: tuple[FallbackRule, ...]
    terms: Terms
    drill: Drill
    counts: frozenset[str] | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the rules may look at: the input's JSON text, and who asks."""

    input: Payload = ABSENT
    tenant: str = ""
    workflow: str = ""
    labels: dict[str, str] = {}
    priority: int = 0

    def get(self, name: str, /) -> bytes | None:
        """The JSON text of a root name (an expression's scope)."""
        match name:
            case "input":
                return bytes(self.input) or b"null"
            case "session":
                return msgspec.json.encode(
                    {
                        "tenant": self.tenant,
                        "workflow": self.workflow,
                        "labels": self.labels,
                        "priority": self.priority,
                    }
                )
            case _:
                return None


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the rules say: an output, or why there is none. `rule`: which one said it."""

    rule: str
    output: Payload = ABSENT
    error: AcpError | None = None


def answer(rules: BusinessFallback, case: Case) -> Answer:
    """The answer of the first rule that holds."""
    for rule in rules.rules:
        try:
            if rule.when is not None and not rule.when.evaluate_bool(case):
                continue
            return Answer(rule=rule.name, output=payload(rule.output.evaluate(case)))
        except ExpressionError as problem:
            return Answer(rule=rule.name, error=_failed(rule, problem))
    raise AssertionError("the last rule has no condition: the reader saw to it")


def _failed(rule: FallbackRule, problem: ExpressionError) -> AcpError:
    return error(
        Reason.CONTRACT_VIOLATION,
        f"fallback rule {rule.name!r} (line {rule.line}) failed: {problem}",
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )


# ---- reading -------------------------------------------------------------------------------------


def read(reader: FieldReader, found: Field) -> BusinessFallback | None:
    """The section; what is wrong in it is noted in `reader`, and None if it names no rules."""
    fields = reader.fields(found.value, found.path, known=KEYS)
    rules = _rules(reader, fields.get("rules"))
    if not rules:
        if fields and "rules" not in fields:
            reader.fault(found, "name its `rules`: [{name, when, output}, ..., {name, output}]")
        return None
    digest = hashlib.sha256(json_text(fields["rules"].value)).hexdigest()
    version = reader.text(
        fields.get("version"), pattern=VERSION_TEXT, advice="a version: letters, digits, '._-'"
    )
    return BusinessFallback(
        version=version or digest[:DIGEST_SHOWN],
        rules=rules,
        terms=_terms(reader, fields),
        counts=_counts(reader, fields.get("counts")),
        drill=_drill(reader, fields.get("drill"), names=frozenset(rule.name for rule in rules)),
    )


def _terms(reader: FieldReader, fields: dict[str, Field]) -> Terms:
    def count(key: str, default: int) -> int:
        return reader.integer(fields.get(key), default, least=1, most=THRESHOLD_MOST)

    return Terms(
        after_failures=count("after_failures", AFTER_FAILURES),
        probe_every=count("probe_every", PROBE_EVERY),
        return_after=count("return_after", RETURN_AFTER),
    )


def _rules(reader: FieldReader, found: Field | None) -> tuple[FallbackRule, ...]:
    if found is None:
        return ()
    items = reader.items(found.value, found.path)
    if len(items) > RULES_MAX:
        reader.fault(found, f"at most {RULES_MAX} rules, these are {len(items)}")
        return ()
    read = [
        _rule(reader, Field(f"{found.path}[{index}]", item.place, item))
        for index, item in enumerate(items)
    ]
    rules = tuple(rule for rule in read if rule is not None)
    _check_order(reader, found, rules=rules, complete=len(rules) == len(items))
    return rules


def _rule(reader: FieldReader, found: Field) -> FallbackRule | None:
    fields = reader.fields(found.value, found.path, known=RULE_KEYS)
    if not isinstance(found.value, Mapping):
        return None
    for required in ("name", "output"):
        if required not in fields:
            path = f"{found.path}.{required}"
            reader.problem(found.place, path, message=f"the key {required!r} is missing")
    advice = "a rule's name: small letters, digits and '_', beginning with a letter"
    name = reader.text(fields.get("name"), pattern=RULE_NAME, advice=advice)
    output = _expression(reader, fields.get("output"))
    when = _expression(reader, fields.get("when"))
    if not name or output is None or (when is None and "when" in fields):
        return None
    return FallbackRule(name=name, when=when, output=output, line=found.place.line)


def _expression(reader: FieldReader, found: Field | None) -> Expression | None:
    """An expression that names nothing but what is known before anybody was called."""
    if found is None:
        return None
    expression = reader.expression(found)
    for path in expression.paths if expression is not None else ():
        if path.root not in NAMES:
            value = found.value
            place = value.at(path.column) if isinstance(value, Scalar) else found.place
            message = f"unknown name {path.root!r}: the rules know input and session only"
            reader.problem(place, found.path, message=message)
            return None
    return expression


def _check_order(
    reader: FieldReader, found: Field, *, rules: tuple[FallbackRule, ...], complete: bool
) -> None:
    names = [rule.name for rule in rules]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.fault(found, f"two rules have the name {name!r}")
    if not complete:
        return  # what is missing is told already
    for rule in rules[:-1]:
        if rule.when is None:
            message = f"rule {rule.name!r} has no `when`, so no rule behind it is ever asked"
            reader.fault(found, message)
    if not rules or rules[-1].when is not None:
        reader.fault(found, "the last rule must have no `when`: there must always be an answer")


def _counts(reader: FieldReader, found: Field | None) -> frozenset[str] | None:
    if found is None:
        return None
    known = sorted([*(reason.value for reason in Reason), FELL_BACK])
    counts: set[str] = set()
    for index, item in enumerate(reader.items(found.value, found.path)):
        field = Field(f"{found.path}[{index}]", item.place, item)
        name = reader.text(field).upper()
        if name and name not in known:
            reader.fault(field, f"{name!r} is no reason of an error" + hint(name, known))
        counts.add(name)
    return frozenset(counts)


def _drill(reader: FieldReader, found: Field | None, *, names: frozenset[str]) -> Drill:
    if found is None:
        return Drill()
    fields = reader.fields(found.value, found.path, known=DRILL_KEYS)
    listed = fields.get("inputs")
    items = reader.items(listed.value, listed.path) if listed is not None else ()
    if listed is not None and len(items) > INPUTS_MAX:
        reader.fault(listed, f"at most {INPUTS_MAX} inputs, these are {len(items)}")
    inputs = [
        _drill_input(reader, Field(f"{found.path}.inputs[{index}]", item.place, item), names=names)
        for index, item in enumerate(items[:INPUTS_MAX])
    ]
    return Drill(
        every_ms=reader.integer(
            fields.get("every_ms"), EVERY_MS_DEFAULT, least=EVERY_MS_LEAST, most=EVERY_MS_MOST
        ),
        keep=reader.integer(fields.get("keep"), KEEP_DEFAULT, least=0, most=KEEP_MAX),
        inputs=tuple(inputs),
    )


def _drill_input(reader: FieldReader, found: Field, *, names: frozenset[str]) -> DrillInput:
    fields = reader.fields(found.value, found.path, known=INPUT_KEYS)
    if isinstance(found.value, Mapping) and "input" not in fields:
        reader.fault(found, "a drill's input stands under the key `input`")
    rule = fields.get("rule")
    name = reader.text(rule)
    if rule is not None and name and name not in names:
        reader.fault(rule, f"there is no rule {name!r}" + hint(name, names))
    return DrillInput(
        input=_text(fields.get("input")), rule=name, output=_text(fields.get("output"))
    )


def _text(found: Field | None) -> bytes:
    if found is None or _is_empty(found):
        return b""
    return json_text(found.value)


def _is_empty(found: Field) -> bool:
    return isinstance(found.value, Scalar) and found.value.kind is ScalarKind.NULL
