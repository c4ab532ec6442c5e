"""The contract's section `semantics` (R13): value domains, and the places whose values have one.

    semantics:
      domains:
        intent:
          values: {order_status_query: [track_order, where is it], refund: []}
          threshold: 0.8            # optional; `folded: false`, `nearest: false` switch rules off
      fields:
        - {in: input, at: /intent, domain: intent}
        - {in: output, action: classify, at: /labels/*, domain: intent}
        - {in: arguments, action: route, at: /queue, domain: intent, nullable: true}
      cases:                        # what `acp contract check` asks; `means: null` = is refused
        - {domain: intent, value: Track-Order, means: order_status_query}

Spellings that could mean two values are refused here, when the contract is stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from acp_spec.codec.json_text import PointerError, parse_pointer
from acp_spec.codec.yaml_tree import Mapping, Scalar, ScalarKind, Sequence
from acp_spec.model.enums import Word
from gateway.expressions.field_reader import Field, FieldReader, hint
from gateway.governance.domains import (
    THRESHOLD_DEFAULT,
    VALUE_CHARACTERS_MAX,
    Domain,
    Nearest,
    clashes,
    domain_of,
    place,
)

DOMAINS_MAX: Final = 64
SPELLINGS_MAX: Final = 10_000
GUESSED_MAX: Final = 1_000
"""Names and synonyms of a domain that `nearest` guesses in: its table takes 50 ms to make, on the
loop. A longer list is one of codes, where a near one is another one."""
FIELDS_MAX: Final = 256
CASES_MAX: Final = 1_000
POINTER_TOKENS_MAX: Final = 24
DOMAIN_NAME: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"

KEYS: Final = ("domains", "fields", "cases")
DOMAIN_KEYS: Final = ("description", "values", "threshold", "folded", "nearest")
FIELD_KEYS: Final = ("in", "at", "domain", "action", "step", "component", "nullable")
CASE_KEYS: Final = ("domain", "value", "means")

Domains: TypeAlias = "dict[str, Domain]"


class Side(Word):
    """Where a value enters: with the session, in a component's answer, in a call's arguments."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
    ARGUMENTS = "ARGUMENTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """One place whose values have a domain. `tokens`: its pointer, `*` for every child there.

    `action`, `step` and `component` empty: any.
    """

    side: Side
    tokens: tuple[str, ...]
    domain: Domain
    action: str = ""
    step: str = ""
    component: str = ""
    nullable: bool = False

    def fits(self, origin: "Origin") -> bool:
        """Is it a payload of this origin that the rule is for?"""
        pairs = (
            (self.action, origin.action),
            (self.step, origin.step),
            (self.component, origin.component),
        )
        return all(not wanted or wanted == given for wanted, given in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose payload it is, as far as that is known."""

    action: str = ""
    step: str = ""
    component: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A value and what it must come to; `means` empty: it must be refused."""

    domain: Domain
    value: str
    means: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The section: domains by name, the places that have one, and the cases that must hold."""

    domains: Domains
    fields: tuple[FieldRule, ...] = ()
    cases: tuple[Case, ...] = ()

    def rules(self, side: Side, origin: Origin = Origin()) -> tuple[FieldRule, ...]:
        """The rules for this payload, in the order of the file: of two for one place the first."""
        return tuple(rule for rule in self.fields if rule.side is side and rule.fits(origin))


def read(reader: FieldReader, found: Field) -> Semantics:
    """The section; what is wrong in it is noted in `reader`."""
    fields = reader.fields(found.value, found.path, known=KEYS)
    domains = _domains(reader, fields.get("domains"))
    rules = [
        rule
        for one in _listed(reader, fields.get("fields"), most=FIELDS_MAX)
        if (rule := _rule(reader, one, domains=domains)) is not None
    ]
    _check_apart(reader, fields.get("fields"), rules=rules)
    cases = [
        case
        for one in _listed(reader, fields.get("cases"), most=CASES_MAX)
        if (case := _case(reader, one, domains=domains)) is not None
    ]
    return Semantics(domains=domains, fields=tuple(rules), cases=tuple(cases))


def failed_cases(semantics: Semantics, *, nearest: Nearest) -> tuple[str, ...]:
    """What does not come out as the file says, as sentences."""
    failed: list[str] = []
    for case in semantics.cases:
        found = place(case.domain, case.value, nearest=nearest)
        if found.value != case.means:
            came = f"comes to {found.value!r}" if found.value else "is refused"
            wanted = f"should come to {case.means!r}" if case.means else "should be refused"
            where = f"line {case.line}: {case.domain.name}: {case.value!r}"
            failed.append(f"{where} {came} ({found.confidence:.2f}), {wanted}")
    return tuple(failed)


def _domains(reader: FieldReader, found: Field | None) -> dict[str, Domain]:
    if found is None:
        return {}
    fields = reader.fields(found.value, found.path, known=None)
    if len(fields) > DOMAINS_MAX:
        reader.fault(found, f"at most {DOMAINS_MAX} domains, these are {len(fields)}")
        return {}
    named = ((name, _domain(reader, name, found=one)) for name, one in fields.items())
    return {name: domain for name, domain in named if domain is not None}


def _domain(reader: FieldReader, name: str, *, found: Field) -> Domain | None:
    reader.text(
        Field(found.path, found.key, Scalar(name, ScalarKind.TEXT, found.key)),
        pattern=DOMAIN_NAME,
        advice="a domain's name: letters, digits, '.', '_' and '-', at most 64",
    )
    fields = reader.fields(found.value, found.path, known=DOMAIN_KEYS)
    if "values" not in fields:
        if isinstance(found.value, Mapping):
            reader.fault(found, "name its values: {value: [synonym, ...], ...} or [value, ...]")
        return None
    folds = reader.boolean(fields["folded"]) if "folded" in fields else True
    values = _values(reader, fields["values"])
    guesses = reader.boolean(fields["nearest"]) if "nearest" in fields else True
    if not _check_size(reader, fields["values"], values=values, guesses=guesses):
        return None
    _check_clashes(reader, fields["values"], values=values, folds=folds)
    return domain_of(
        name,
        values,
        threshold=reader.number(fields.get("threshold"), THRESHOLD_DEFAULT, least=0.0, most=1.0),
        folds=folds,
        guesses=guesses,
    )


def _check_size(
    reader: FieldReader, found: Field, *, values: dict[str, tuple[str, ...]], guesses: bool
) -> bool:
    count = sum(1 + len(named) for named in values.values())
    if count > SPELLINGS_MAX:
        reader.fault(found, f"a domain has at most {SPELLINGS_MAX} names and synonyms")
    elif guesses and count > GUESSED_MAX:
        more = f"with `nearest: false` {SPELLINGS_MAX} are"
        reader.fault(found, f"at most {GUESSED_MAX} names and synonyms can be guessed; {more}")
    else:
        return True
    return False


def _values(reader: FieldReader, found: Field) -> dict[str, tuple[str, ...]]:
    """Values with their synonyms; a plain list has none."""
    if isinstance(found.value, Sequence):
        named = [(one.text, ()) for one in _texts(reader, found)]
        if len({name for name, _ in named}) < len(named):
            reader.fault(found, "a value stands in this list twice")
        return dict(named)
    fields = reader.fields(found.value, found.path, known=None)
    if not fields and isinstance(found.value, Mapping):
        reader.fault(found, "a domain has at least one value")
    values: dict[str, tuple[str, ...]] = {}
    for name, one in fields.items():
        key = Scalar(name, ScalarKind.TEXT, one.key)
        _check_text(reader, Field(one.path, one.key, key))
        values[name] = tuple(text.text for text in _texts(reader, one))
    return values


def _texts(reader: FieldReader, found: Field) -> Iterator[Scalar]:
    for index, item in enumerate(reader.items(found.value, found.path)):
        field = Field(f"{found.path}[{index}]", item.place, item)
        if _check_text(reader, field) and isinstance(item, Scalar):
            yield item


def _check_text(reader: FieldReader, found: Field) -> bool:
    text = reader.text(found)
    if len(text) > VALUE_CHARACTERS_MAX:
        reader.fault(found, f"at most {VALUE_CHARACTERS_MAX} characters are a value")
    elif text and not text.strip():
        reader.fault(found, "white space alone is no value")
    elif not text and isinstance(found.value, Scalar) and found.value.kind is ScalarKind.TEXT:
        reader.fault(found, "an empty text is no value")
    return bool(text.strip()) and len(text) <= VALUE_CHARACTERS_MAX


def _check_clashes(
    reader: FieldReader, found: Field, *, values: dict[str, tuple[str, ...]], folds: bool
) -> None:
    for clash in clashes(values, folds=folds):
        alike = "the same when folded" if folds else "the same"
        message = (
            f"{clash.spelling!r} (for {clash.value!r}) and {clash.other!r} (for"
            f" {clash.other_value!r}) are {alike}: nobody could tell which is meant"
        )
        reader.fault(found, message)


def _listed(reader: FieldReader, found: Field | None, *, most: int) -> Iterator[Field]:
    if found is None:
        return
    items = reader.items(found.value, found.path)
    if len(items) > most:
        reader.fault(found, f"at most {most}, these are {len(items)}")
    for index, item in enumerate(items[:most]):
        yield Field(f"{found.path}[{index}]", item.place, item)


def _rule(reader: FieldReader, found: Field, *, domains: Domains) -> FieldRule | None:
    fields = reader.fields(found.value, found.path, known=FIELD_KEYS)
    if not isinstance(found.value, Mapping):
        return None
    for required in ("in", "at", "domain"):
        if required not in fields:
            path = f"{found.path}.{required}"
            reader.problem(found.place, path, message=f"the key {required!r} is missing")
    side = reader.choice(fields.get("in"), Side)
    domain = _named_domain(reader, fields.get("domain"), domains=domains)
    tokens = _tokens(reader, fields.get("at"))
    if side is None or domain is None or tokens is None:
        return None
    if side is Side.INPUT:
        for key in ("action", "step", "component"):
            if key in fields:
                reader.fault(fields[key], f"a session's input has no {key}")
    return FieldRule(
        side=side,
        tokens=tokens,
        domain=domain,
        action=reader.text(fields.get("action")),
        step=reader.text(fields.get("step")),
        component=reader.text(fields.get("component")),
        nullable=reader.boolean(fields.get("nullable")),
    )


def _named_domain(reader: FieldReader, found: Field | None, *, domains: Domains) -> Domain | None:
    name = reader.text(found)
    if found is not None and name and name not in domains:
        reader.fault(found, f"there is no domain {name!r}" + hint(name, domains))
    return domains.get(name)


def _tokens(reader: FieldReader, found: Field | None) -> tuple[str, ...] | None:
    if found is None:
        return None
    if isinstance(found.value, Scalar) and found.value.text == "":
        return ()
    try:
        tokens = parse_pointer(reader.text(found))
    except PointerError as problem:
        reader.fault(found, str(problem))
        return None
    if len(tokens) > POINTER_TOKENS_MAX:
        reader.fault(found, f"a pointer has at most {POINTER_TOKENS_MAX} parts")
        return None
    return tokens


def _check_apart(reader: FieldReader, found: Field | None, *, rules: list[FieldRule]) -> None:
    """One place has one domain, or which one holds would hang on the order of the file."""
    seen: set[tuple[object, ...]] = set()
    for rule in rules:
        key = (rule.side, rule.tokens, rule.action, rule.step, rule.component)
        if key in seen and found is not None:
            reader.fault(found, f"/{'/'.join(rule.tokens)} has a domain already")
        seen.add(key)


def _case(reader: FieldReader, found: Field, *, domains: Domains) -> Case | None:
    fields = reader.fields(found.value, found.path, known=CASE_KEYS)
    domain = _named_domain(reader, fields.get("domain"), domains=domains)
    value, means = fields.get("value"), fields.get("means")
    if domain is None or value is None:
        if isinstance(found.value, Mapping) and "value" not in fields:
            reader.fault(found, "a case has a `domain`, a `value`, and what it `means`")
        return None
    meant = "" if means is None or _is_null(means) else reader.text(means)
    if means is not None and meant and meant not in domain.values:
        reader.fault(
            means, f"{meant!r} is no value of {domain.name!r}" + hint(meant, domain.values)
        )
    return Case(domain=domain, value=reader.text(value), means=meant, line=found.place.line)


def _is_null(found: Field) -> bool:
    return isinstance(found.value, Scalar) and found.value.kind is ScalarKind.NULL
