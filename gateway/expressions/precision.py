"""Numbers that a double cannot hold as they were written: known when read, refused when written.

Integers of 64 bits are exact. Any other number becomes a double; where that changes it, comparing
is allowed but the result may not carry it on: neither copied, nor computed from, nor printed. A
computed double from 2^53 on cannot be told from its neighbours and is refused as well.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from acp_spec.codec.json_text import Plain
from gateway.expressions.fault import violation
from gateway.expressions.path import Path
from gateway.expressions.syntax import Call, Chain, Node, children

# Translated so, 16 characters of a number in a row are 16 zeros, and an exponent is "0e".
_DIGITS: Final = bytes(
    ord("0") if chr(byte) in "0123456789." else ord("e") if chr(byte) in "eE" else ord(" ")
    for byte in range(256)
)
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_INT64_DIGITS: Final = 19
_FIRST_AMBIGUOUS: Final = 2.0**53
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})
_ADVICE: Final = "copy such a number by its bare path instead"


@dataclass(slots=True)
class Inexact:
    """Doubles that lost digits when they were read, and a path that is such a number itself."""

    doubles: set[float] = field(default_factory=set)
    named: Path | None = None


@dataclass(frozen=True, slots=True)
class PrecisionRules:
    """What an expression does with numbers: arithmetic (or double()), and printing by string()."""

    computes: bool
    prints: bool


def precision_rules(tree: Node) -> PrecisionRules:
    """The rules that the result of `tree` has to keep."""
    below = [precision_rules(child) for child in children(tree)]
    computes = any(rules.computes for rules in below)
    prints = any(rules.prints for rules in below)
    match tree:
        case Chain(_, operators):
            computes = computes or not _ARITHMETIC.isdisjoint(operators)
        case Call("double"):
            computes = True
        case Call("string"):
            prints = True
        case _:
            pass
    return PrecisionRules(computes, prints)


def needs_care(data: bytes) -> bool:
    """Whether JSON text may hold a number that int64 and double do not keep as written."""
    digits = data.translate(_DIGITS)
    return b"0" * 16 in digits or b"0e" in digits


def is_exact(text: str) -> bool:
    """Whether the double that a number's text becomes is written with the same value again."""
    number = float(text)
    return math.isfinite(number) and Decimal(repr(number)) == Decimal(text)


def decode_careful(data: bytes, inexact: Inexact, *, path: Path) -> Plain:
    """A value as CEL sees it: int64 or double. What lost digits is noted in `inexact`."""

    def double(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise violation(f"{path}: {text[:30]} is too large for a computed value", path.column)
        if not is_exact(text):
            inexact.doubles.add(number)
        return number

    def integer(text: str) -> int | float:
        if len(text) <= _INT64_DIGITS + 1 and _INT64_MIN <= int(text) <= _INT64_MAX:
            return int(text)
        return double(text)

    decoded: Plain = json.loads(data, parse_float=double, parse_int=integer)
    if isinstance(decoded, float) and decoded in inexact.doubles:
        inexact.named = path
    return decoded


def check_precision(result: Plain, rules: PrecisionRules, *, inexact: Inexact) -> None:
    """Refuse (CONTRACT_VIOLATION) a result that carries a number in fewer digits than it had."""
    if inexact.doubles or rules.computes:
        _check(result, rules, inexact=inexact)


def _check(value: Plain, rules: PrecisionRules, *, inexact: Inexact) -> None:
    match value:
        case float():
            _check_double(value, rules, inexact=inexact)
        case str() if rules.prints and inexact.named is not None:
            raise violation(f"{inexact.named} lost precision; {_ADVICE}", inexact.named.column)
        case list():
            for item in value:
                _check(item, rules, inexact=inexact)
        case Mapping():
            for item in value.values():
                _check(item, rules, inexact=inexact)
        case _:
            pass


def _check_double(value: float, rules: PrecisionRules, *, inexact: Inexact) -> None:
    if value in inexact.doubles:
        raise violation(f"{value!r} lost precision; {_ADVICE}")
    if inexact.named is not None and rules.computes:
        raise violation(f"{inexact.named} lost precision; {_ADVICE}", inexact.named.column)
    if rules.computes and math.isfinite(value) and abs(value) >= _FIRST_AMBIGUOUS:
        raise violation(f"a computed double of 2^53 or more ({value!r}) lost precision; use int")
