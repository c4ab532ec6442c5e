"""An expression's value as a finite number; everything else is a fault of the rule."""

import math
from typing import Final

from gateway.expressions.expression import Expression
from gateway.expressions.fault import violation
from gateway.expressions.path import Scope

LARGEST: Final = 1e6
"""Of a single value: beyond it a unit was mistaken, and sums would lose the small ones."""


def number(expression: Expression, scope: Scope) -> float:
    """Raises ExpressionError when there is none."""
    text = expression.evaluate(scope)
    try:
        value = float(text)
    except ValueError:
        shown = text[:40].decode("utf-8", "replace")
        raise violation(f"must be a number, not {shown}") from None
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise violation(f"{value:g} is beyond {LARGEST:g}, which no reward is")
    return value
