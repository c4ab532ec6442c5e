"""A mean of finite numbers that is there also where their sum is none.

A reflector, or a rater of before scores had bounds, may have said 1e308 twice; a record that cannot
be made for it is one that nobody trains on.
"""

import math
from collections.abc import Sequence


def mean_of(values: Sequence[float]) -> float:
    """Of at least one; exact as `math.fsum` is, whatever their order."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)
