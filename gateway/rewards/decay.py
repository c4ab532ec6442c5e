"""How much a judgement counts that came late: a weight in its session's aggregate, never a factor
of its score.

A rating of last year is as true as one of today; what a program found hours later may be about
another world. So half-lives stand per kind, and most kinds have none.
"""

import math


def weight(delay_ms: float, half_life_ms: float | None) -> float:
    """1 at once, a half after one half-life; always 1 where there is no half-life."""
    if half_life_ms is None or delay_ms <= 0:
        return 1.0
    return math.exp2(-delay_ms / half_life_ms)
