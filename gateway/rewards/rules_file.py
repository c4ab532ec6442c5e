"""From the text of a rules file to checked rules, or to everything that is wrong in it.

Read like a workflow file: nothing is guessed, a name that an event does not have is a problem here
and not a null later, and a potential that is not 0 at an end is no potential.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from acp_spec.codec.yaml_tree import Mapping as MappingTree
from acp_spec.codec.yaml_tree import Scalar, Tree, read_tree
from acp_spec.model.enums import FeedbackKind
from acp_spec.model.reward_vector import RulesRef
from acp_spec.model.semver import VersionError, parse
from acp_spec.model.session import Problem
from gateway.expressions.expression import Expression, ExpressionError
from gateway.expressions.field_reader import Field, FieldReader, hint
from gateway.rewards import shaping
from gateway.rewards.facts import (
    FACTS_OF,
    PAYLOADS_OF,
    PROGRESS,
    SESSION,
    Facts,
    FactScope,
    ProgressFacts,
    SessionFacts,
    name_of,
)
from gateway.rewards.rules import Each, Part, RewardRules, Rule, RuleKind
from gateway.rewards.worth import LARGEST, number

NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
NAME_ADVICE: Final = "a name: letters, digits, '.', '_' and '-', at most 64"
RULES_MAX: Final = 64
"""Each is evaluated for every event of every session."""
HOURS_MAX: Final = 24 * 365 * 100.0

KEYS: Final = ("rewards", "version", "description", "half_life_hours", "penalties", "rules")
REQUIRED: Final = ("rewards", "version", "rules")
WORTH_OF: Final = {
    RuleKind.OUTCOME: "value",
    RuleKind.COST: "cost",
    RuleKind.SHAPING: "potential",
}
"""The key that says what a rule is worth, by its kind."""
_COMMON: Final = ("name", "kind", "workflows")
KEYS_OF: Final = {
    RuleKind.OUTCOME: (*_COMMON, "each", "part", "when", "value", "weight"),
    RuleKind.COST: (*_COMMON, "each", "part", "when", "cost"),
    RuleKind.SHAPING: (*_COMMON, "potential"),
}
RULE_KEYS: Final = tuple(dict.fromkeys(key for keys in KEYS_OF.values() for key in keys))


def parse_rules(text: bytes) -> RewardRules | tuple[Problem, ...]:
    """The rules in `text` (YAML or JSON), or all problems in the order of the file."""
    reading = read_tree(text)
    reader = FieldReader()
    reader.take(reading.faults)
    rules = None
    if reading.tree is not None:
        rules = _rules(reader, reading.tree, digest=hashlib.sha256(text).hexdigest())
    if rules is None or reader.problems:
        return tuple(sorted(reader.problems, key=lambda one: (one.line, one.column)))
    return rules


def _rules(reader: FieldReader, tree: Tree, *, digest: str) -> RewardRules | None:
    if not isinstance(tree, MappingTree):
        message = "this must be an object with rewards, version and rules"
        reader.problem(tree.place, "", message=message)
        return None
    fields = reader.fields(tree, "", known=KEYS)
    for required in REQUIRED:
        if tree.get(required) is None:
            reader.problem(tree.place, required, message=f"the key {required!r} is missing")
    name = reader.text(fields.get("rewards"), pattern=NAME_PATTERN, advice=NAME_ADVICE)
    half_lives = _half_lives(reader, fields.get("half_life_hours"))
    default = RewardRules(ref=RulesRef(name="", version="", digest=""), rules=())
    return RewardRules(
        ref=RulesRef(name=name, version=_version(reader, fields.get("version")), digest=digest),
        description=reader.text(fields.get("description")),
        penalties=_numbers(reader, fields.get("penalties"), most=LARGEST),
        half_life_hours=default.half_life_hours if half_lives is None else half_lives,
        rules=_list(reader, fields.get("rules")),
    )


def _version(reader: FieldReader, found: Field | None) -> str:
    text = reader.text(found)
    if found is None or not text:
        return ""
    try:
        return str(parse(text))
    except VersionError as error:
        reader.fault(found, str(error))
        return ""


def _numbers(reader: FieldReader, found: Field | None, *, most: float) -> dict[str, float]:
    if found is None:
        return {}
    fields = reader.fields(found.value, found.path, known=None)
    return {name: reader.number(one, 1.0, least=0, most=most) for name, one in fields.items()}


def _half_lives(reader: FieldReader, found: Field | None) -> dict[FeedbackKind, float] | None:
    """None where the file says nothing; a kind that it does not name never fades then."""
    if found is None:
        return None
    kinds = [kind.value for kind in FeedbackKind]
    fields = reader.fields(found.value, found.path, known=kinds)
    return {
        FeedbackKind(name): reader.number(one, 1.0, least=1e-6, most=HOURS_MAX)
        for name, one in fields.items()
    }


def _list(reader: FieldReader, found: Field | None) -> tuple[Rule, ...]:
    if found is None:
        return ()
    items = reader.items(found.value, found.path)
    if len(items) > RULES_MAX:
        reader.fault(found, f"{len(items)} rules, at most {RULES_MAX} are taken")
        return ()
    rules: list[Rule] = []
    for at, tree in enumerate(items):
        rule = _rule(reader, tree, path=f"{found.path}[{at}]")
        if rule is None:
            continue
        if rule.name and rule.name in {one.name for one in rules}:
            reader.problem(tree.place, found.path, message=f"two rules are named {rule.name!r}")
        rules.append(rule)
    return tuple(rules)


def _rule(reader: FieldReader, tree: Tree, *, path: str) -> Rule | None:
    if not isinstance(tree, MappingTree):
        reader.problem(tree.place, path, message="a rule is an object with name and kind")
        return None
    fields = reader.fields(tree, path, known=RULE_KEYS)
    kind = reader.choice(fields.get("kind"), RuleKind)
    if kind is None:
        if "kind" not in fields:
            message = "the key 'kind' is missing: outcome, cost or shaping"
            reader.problem(tree.place, path, message=message)
        return None
    for name, one in fields.items():
        if name not in KEYS_OF[kind]:
            message = f"a rule of kind {kind.value.lower()} has no {name!r}"
            reader.problem(one.key, one.path, message=message + hint(name, KEYS_OF[kind]))
    return _read_rule(reader, Field(path, tree.place, tree), fields=fields, kind=kind)


def _read_rule(
    reader: FieldReader, whole: Field, *, fields: dict[str, Field], kind: RuleKind
) -> Rule | None:
    for required in ("name", WORTH_OF[kind]):
        if required not in fields:
            reader.fault(whole, f"the key {required!r} is missing")
    each = reader.choice(fields.get("each"), Each) or Each.END
    part = reader.choice(fields.get("part"), Part) or Part.SESSION
    if kind is not RuleKind.SHAPING and part is Part.STEP and each is Each.END:
        where = fields.get("part") or whole
        reader.fault(
            where, "the session's end belongs to no step: use part: session, or each: call"
        )
    worth = _expression(reader, fields.get(WORTH_OF[kind]), roots=_roots(kind, each))
    if worth is None:
        return None
    if kind is RuleKind.SHAPING:
        _check_potential(reader, fields["potential"], potential=worth)
    elif not worth.paths:
        _check_constant(reader, fields[WORTH_OF[kind]], worth=worth, kind=kind)
    return Rule(
        name=reader.text(fields.get("name"), pattern=NAME_PATTERN, advice=NAME_ADVICE),
        kind=kind,
        worth=worth,
        part=part,
        each=each,
        when=_expression(reader, fields.get("when"), roots=_roots(kind, each)),
        weight=reader.number(fields.get("weight"), 1.0, least=1e-6, most=LARGEST),
        workflows=_names(reader, fields.get("workflows")),
    )


def _names(reader: FieldReader, found: Field | None) -> frozenset[str]:
    if found is None:
        return frozenset()
    items = reader.items(found.value, found.path)
    return frozenset(reader.text(Field(found.path, found.key, one)) for one in items)


# ---- expressions -------------------------------------------------------------------------------

_Roots = dict[str, type[Facts] | None]
"""What can be named, and the fields of each; None: a payload, whose fields nobody knows."""


def _roots(kind: RuleKind, each: Each) -> _Roots:
    if kind is RuleKind.SHAPING:
        return {PROGRESS: ProgressFacts}
    payloads: _Roots = dict.fromkeys(PAYLOADS_OF.get(each, ()))
    return {name_of(each): FACTS_OF[each], SESSION: SessionFacts, **payloads}


def _expression(reader: FieldReader, found: Field | None, *, roots: _Roots) -> Expression | None:
    expression = None if found is None else reader.expression(found)
    if found is None or expression is None:
        return None
    for path in expression.paths:
        message = _unknown(path.root, path.parts, roots=roots)
        if message:
            value = found.value
            place = value.at(path.column) if isinstance(value, Scalar) else found.place
            reader.problem(place, found.path, message=message)
    return expression


def _unknown(root: str, parts: Iterable[str | int], *, roots: _Roots) -> str:
    if root not in roots:
        return f"unknown name {root!r}" + hint(root, roots)
    facts = roots[root]
    first = next(iter(parts), None)
    if facts is None or first is None:
        return ""
    known = [one.encode_name for one in msgspec.structs.fields(facts)]
    return "" if first in known else f"{root!r} has no field {first!r}" + hint(str(first), known)


def _check_constant(
    reader: FieldReader, found: Field, *, worth: Expression, kind: RuleKind
) -> None:
    """What names nothing of an event is the same for each, so a fault of it shows here already."""
    try:
        value = number(worth, FactScope({}))
    except ExpressionError as problem:
        reader.fault(found, problem.message)
        return
    if kind is RuleKind.COST and value < 0:
        reader.fault(found, f"a cost is at least 0, this is {value:g}")


def _check_potential(reader: FieldReader, found: Field, *, potential: Expression) -> None:
    if any(path.root != PROGRESS for path in potential.paths):
        return  # told already
    fault = shaping.fault_of(potential)
    if fault:
        reader.fault(found, fault)
