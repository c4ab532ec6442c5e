"""Derivations: a claim's expression over its sources, run as bounded CEL.

The sources have names: `sources[0]`, `sources[1]` in their order, and each by its member's name
(`balance`) where that is an identifier and no other source has it. Numbers may mix whole and
decimal: what CEL refuses for its types alone is asked again with every number a double.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from acp_spec.codec.json_text import array_of, parse_pointer
from gateway.expressions.expression import ExpressionError, compile_expression
from gateway.rewards.grounding.facts import Value, value_of

_NUMBER: Final = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_NUMBER_STRING: Final = re.compile(rb'"(-?\d+(?:\.\d+)?)"')
_TOKENS: Final = re.compile(
    r"""'[^']*'|"[^"]*"|\[\s*\d+\s*\]|(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|."""
)


@dataclass(frozen=True, slots=True)
class _Names:
    """The scope of a derivation."""

    texts: dict[str, bytes]

    def get(self, name: str, /) -> bytes | None:
        return self.texts.get(name)


def derive(derivation: str, pointers: Sequence[str], *, texts: Sequence[bytes]) -> list[Value]:
    """What the derivation may mean: whole numbers as such, and as doubles.

    Raises ExpressionError if it means nothing.
    """
    found, problem = list[Value](), None
    for widened in (False, True):
        try:
            found.append(_run(derivation, pointers, texts=texts, widened=widened))
        except ExpressionError as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    return found


def _run(
    derivation: str, pointers: Sequence[str], *, texts: Sequence[bytes], widened: bool
) -> Value:
    text = _widened(derivation) if widened else derivation
    values = [_double(one) for one in texts] if widened else list(texts)
    names = {"sources": array_of(values)}
    keys = [(*parse_pointer(pointer), "")[-2] for pointer in pointers]
    for key, value in zip(keys, values, strict=True):
        if keys.count(key) == 1 and key.isidentifier() and key != "sources":
            names[key] = value
    return value_of(compile_expression(text).evaluate(_Names(names)))


def _double(text: bytes) -> bytes:
    """A number with a decimal point; `"12.50"` as the number that it holds."""
    quoted = _NUMBER_STRING.fullmatch(text)
    number = quoted[1] if quoted else text
    found = _NUMBER.fullmatch(number)
    if found is None:
        return text
    return number if found[1] or found[2] else number + b".0"


def _widened(derivation: str) -> str:
    """Whole literals as doubles; indices and strings stay."""
    return "".join(
        token + ".0" if token.isdigit() else token for token in _TOKENS.findall(derivation)
    )


def exact(value: Value) -> Decimal | None:
    """The number that a derivation gave, without the noise of a double's last digits."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    return number if number == number.to_integral() else Decimal(f"{float(number):.12g}")
