"""A claim's `value`: it must be one of its sources, or what its derivation gives.

A value is declared, so it is held to its sources strictly: if none of them is it, and none
is a text that could hold it, they deny it.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from gateway.rewards.grounding import words
from gateway.rewards.grounding.dates import when_of
from gateway.rewards.grounding.derived import exact
from gateway.rewards.grounding.facts import Fact, Kind, Value, leaf
from gateway.rewards.grounding.figures import Fit, fit
from gateway.rewards.grounding.findings import Finding, Standing, against, open_, stands, told
from gateway.rewards.grounding.mentions import Quantity, mentions_of
from gateway.rewards.grounding.numerals import reading_of
from gateway.rewards.grounding.totals import totals
from gateway.rewards.grounding.units import Unit, same_currency, unit_named

ITEMS_MAX: Final = 50


def derived_fact(result: Value, facts: Sequence[Fact]) -> Fact:
    """What a derivation gave, as a fact in the unit that all its numbers share."""
    number = exact(result)
    if number is None:
        given = result if not isinstance(result, list | dict) else None
        return replace(leaf("its derivation", given, beside={}, name=""), is_value=True)
    units = [fact.unit for fact in facts if fact.kind is Kind.NUMBER]
    shared = units[0] if units and all(unit == units[0] for unit in units) else None
    return Fact(
        pointer="its derivation",
        name="",
        kind=Kind.NUMBER,
        text=str(number),
        number=number,
        unit=shared,
        assumed=True,
        is_value=True,
    )


def value_finding(value: Value, unit: str, *, facts: Sequence[Fact], exhaustive: bool) -> Finding:
    """Is the value what one of the facts is? `exhaustive`: there is nothing beyond the facts."""
    known = unit_named(unit) if unit else None
    if known is not None and known.currency:
        others = [f for f in facts if f.kind is Kind.UNIT and f.unit and f.unit.currency]
        if others and not any(_same_money(known, fact) for fact in others):
            return against(f"its unit is {unit}, but {told(others[0])}")
    finding = _compared(value, known, facts=facts)
    texts = any(fact.kind is Kind.TEXT for fact in facts)
    if finding.standing is Standing.AGAINST and (not exhaustive or texts):
        return open_(f"{finding.reason}; another source may say it in words")
    return finding


def with_value(facts: Sequence[Fact], value: Value, *, unit: str) -> list[Fact]:
    """Marks the facts that the value is: the sentence must be about them, in the claim's unit."""
    if isinstance(value, list | dict) or value is None:
        return list(facts)
    own = leaf("", value, beside={}, name="")
    known = unit_named(unit) if unit else None
    marked = [_marked(fact, known) if _is_it(own, fact) else fact for fact in facts]
    if marked != list(facts) or own.kind is not Kind.NUMBER:
        return marked
    return [*marked, replace(own, unit=known, text=f"{own.text} {unit}".strip(), is_value=True)]


def _marked(fact: Fact, unit: Unit | None) -> Fact:
    takes_unit = fact.kind is Kind.NUMBER and (fact.unit is None or fact.assumed)
    if takes_unit and unit is not None:
        return replace(fact, is_value=True, unit=unit, assumed=False)
    return replace(fact, is_value=True)


def _is_it(own: Fact, fact: Fact) -> bool:
    if own.kind is Kind.NUMBER and fact.kind is Kind.NUMBER:
        return own.number == fact.number
    return words.plain(own.text) == words.plain(fact.text)


def _same_money(unit: Unit, fact: Fact) -> bool:
    return fact.unit is not None and same_currency(unit.currency, fact.unit.currency)


def _compared(value: Value, unit: Unit | None, *, facts: Sequence[Fact]) -> Finding:
    match value:
        case bool():
            return _flag(value, facts)
        case int() | Decimal():
            return _number(Decimal(value), unit, facts=facts)
        case str():
            return _string(value, facts)
        case None:
            empty = [fact for fact in facts if _is_empty(fact)]
            return stands(told(empty[0])) if empty else _denied("null", facts)
        case list():
            return _items(value, facts)
        case dict():
            return _each([*value.values()][:ITEMS_MAX], facts)


def _number(value: Decimal, unit: Unit | None, *, facts: Sequence[Fact]) -> Finding:
    said = Quantity(
        start=-1, end=-1, shown=str(value), readings=(reading_of(value),), unit=unit, signed=True
    )
    best, fact = Fit.UNLIKE, None
    for one in facts:
        if words.plain(one.text) == str(value) and one.unit is None:
            return stands(told(one))
        found = fit(said, one)
        if found > best:
            best, fact = found, one
    if best is Fit.SAME and fact is not None:
        return stands(told(fact))
    whole = next((one for one in totals(facts) if fit(said, one) is Fit.SAME), None)
    if whole is not None:
        return stands(told(whole))
    if best is Fit.COARSE and fact is not None:
        return open_(f"its value {value} is rounded coarsely: {told(fact)}")
    within = [q for one in facts for q in one.inside.quantities]
    if any(reading.value == value for q in within for reading in q.readings):
        return stands("a source says it in words")
    return _denied(str(value), facts)


def _string(value: str, facts: Sequence[Fact]) -> Finding:
    wanted, moment = words.plain(value), when_of(value)
    for fact in facts:
        if words.plain(fact.text) == wanted or words.alike(words.plain(fact.text), wanted):
            return stands(told(fact))
        if moment is not None and fact.moment is not None and moment.agrees(fact.moment):
            return stands(told(fact))
        if fact.kind is Kind.TEXT and wanted and wanted in words.plain(fact.text):
            return stands(told(fact))
    quantities = mentions_of(value).quantities
    if len(quantities) == 1:
        fits = [(fit(quantities[0], fact), fact) for fact in facts]
        same = next((fact for found, fact in fits if found is Fit.SAME), None)
        if same is not None:
            return stands(told(same))
    return _denied(value, facts)


def _flag(value: bool, facts: Sequence[Fact]) -> Finding:
    wanted = "yes" if value else "no"
    flags = [fact for fact in facts if fact.kind is Kind.FLAG]
    same = [fact for fact in flags if fact.text == wanted]
    if same:
        return stands(told(same[0]))
    if not value and any(_is_empty(fact) for fact in facts):
        return stands("the source is empty")
    return _denied(wanted, flags) if flags else open_(f"no source is a yes or no, as {wanted} is")


def _items(value: list[Value], facts: Sequence[Fact]) -> Finding:
    """A list has what its source lists: no item more, none less, none else."""
    sizes = {fact.number for fact in facts if fact.kind is Kind.LIST}
    if sizes and len(value) not in sizes:
        return against(f"its value lists {len(value)} items, its source {min(sizes - {None})}")  # type: ignore[type-var]
    return _each(value[:ITEMS_MAX], facts)


def _each(values: Sequence[Value], facts: Sequence[Fact]) -> Finding:
    for item in values:
        finding = _compared(item, None, facts=facts)
        if finding.standing is not Standing.STANDS:
            return finding
    return stands("each of its items is in its sources")


def _is_empty(fact: Fact) -> bool:
    return fact.kind is Kind.NOTHING or (fact.kind is Kind.LIST and not fact.number)


def _denied(value: str, facts: Sequence[Fact]) -> Finding:
    if not facts:
        return open_(f"there is nothing to compare {value} with")
    shown = "; ".join(told(fact) for fact in facts[:3])
    return against(f"its value is {value}, but {shown}")
