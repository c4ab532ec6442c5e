"""One claim against its sources: SUPPORTED, CONTRADICTED or NOT_CHECKABLE, with the reason.

Its value is held against the sources first (through its derivation, if it names one), then every
number, date, code, status and denial of its sentence. One denial by a source decides; without one,
everything that was said must stand, else a person looks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from acp_spec.model.calls import Claim
from acp_spec.model.payload import is_absent
from gateway.expressions.expression import ExpressionError
from gateway.rewards.grounding.derived import derive
from gateway.rewards.grounding.facts import (
    Fact,
    Settled,
    TooLong,
    Value,
    facts_of,
    source_text,
    value_of,
)
from gateway.rewards.grounding.findings import Finding, Standing, open_
from gateway.rewards.grounding.mentions import MENTIONS_MAX, TEXT_CHARACTERS_MAX
from gateway.rewards.grounding.sentences import sentence_findings
from gateway.rewards.grounding.values import derived_fact, value_finding, with_value

SOURCES_MAX: Final = 20
_FIGURES: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Judged:
    """`missing`: sources that lead nowhere; `(none)` if the claim names no source at all."""

    standing: Standing
    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sources:
    facts: list[Fact]
    texts: list[bytes]
    too_long: tuple[str, ...]


def judged(claim: Claim, calls: Settled) -> Judged:
    """What the sources say of this claim."""
    if not claim.sources:
        return Judged(Standing.OPEN, "it names no source", ("(none)",))
    sizes = len(claim.text), len(bytes(claim.value)), len(claim.derivation)
    if len(claim.sources) > SOURCES_MAX or max(sizes) > TEXT_CHARACTERS_MAX:
        return Judged(Standing.OPEN, "it is too long to be one checkable sentence")
    if len(_FIGURES.findall(claim.text)) > MENTIONS_MAX:
        return Judged(Standing.OPEN, "it holds more figures than one sentence does")
    found, missing = _read(claim.sources, calls)
    if missing:
        return Judged(Standing.OPEN, f"its source {missing[0]} leads nowhere", missing)
    return _concluded(_findings(claim, found))


def _read(pointers: Sequence[str], calls: Settled) -> tuple[_Sources, tuple[str, ...]]:
    facts, texts, too_long, missing = list[Fact](), list[bytes](), list[str](), list[str]()
    for pointer in pointers:
        try:
            text = source_text(pointer, calls)
            if text is None:
                missing.append(pointer)
                continue
            facts += facts_of(pointer, text, calls=calls)
            texts.append(text)
        except TooLong:
            too_long.append(pointer)
            texts.append(b"null")
    return _Sources(facts, texts, tuple(too_long)), tuple(missing)


def _findings(claim: Claim, found: _Sources) -> Iterator[Finding]:
    facts = found.facts
    value: Value = None if is_absent(claim.value) else value_of(bytes(claim.value))
    has_value = not is_absent(claim.value)
    if claim.derivation:
        try:
            results = derive(claim.derivation, claim.sources, texts=found.texts)
        except ExpressionError as problem:
            yield open_(f"its derivation cannot be run: {problem}")
            return
        derived = [derived_fact(result, facts) for result in results]
        if has_value:
            yield value_finding(value, claim.unit, facts=derived, exhaustive=True)
        facts = [*facts, *derived]
    elif has_value:
        yield value_finding(value, claim.unit, facts=facts, exhaustive=not found.too_long)
    if has_value and not isinstance(value, list | dict | None):
        facts = with_value(facts, value, unit=claim.unit)
    for pointer in found.too_long:
        yield open_(f"its source {pointer} is too long to check")
    yield from sentence_findings(claim.text, facts)


def _concluded(findings: Iterator[Finding]) -> Judged:
    """A denial decides; else what is open; else something must stand."""
    all_of = list(findings)
    for standing in (Standing.AGAINST, Standing.OPEN, Standing.STANDS):
        told = [finding.reason for finding in all_of if finding.standing is standing]
        if told:
            return Judged(standing, "; ".join(dict.fromkeys(told[:3])))
    return Judged(Standing.OPEN, "nothing in it can be looked up in its sources")
