"""Logistic regression on one figure: Newton's method, a few lines, no library.

A weak prior keeps it finite where the figure separates the labels; likelihoods are told without it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PRIOR: Final = 0.01
"""Inverse variance of both coefficients, of a figure of size 1: ten of them are no news to it."""
STEPS_MAX: Final = 30
SMALL: Final = 1e-7
LARGEST_STEP: Final = 3.0
"""In logits: beyond it the curve is flat and Newton's step flies off."""


@dataclass(frozen=True, slots=True)
class Points:
    """`ys` are 0 or 1; a weight says how many points one stands for."""

    xs: Sequence[float]
    ys: Sequence[int]
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class Line:
    """log odds = intercept + slope * x."""

    intercept: float = 0.0
    slope: float = 0.0

    def likelihood(self, points: Points) -> float:
        """The logarithm of the weighted likelihood of the labels."""
        a, b = self.intercept, self.slope
        terms = (
            w * _log_probability(a + b * x if y else -(a + b * x))
            for x, y, w in zip(points.xs, points.ys, points.weights, strict=True)
        )
        return math.fsum(terms)


def fitted(points: Points, start: Line) -> Line:
    """The most likely line, from a start that is near it or not."""
    a, b = start.intercept, start.slope
    for _ in range(STEPS_MAX):
        step_a, step_b = _newton(points, Line(a, b))
        a, b = a + step_a, b + step_b
        if abs(step_a) + abs(step_b) < SMALL:
            break
    return Line(a, b)


def _newton(points: Points, at: Line) -> tuple[float, float]:
    a, b = at.intercept, at.slope
    gradient_a, gradient_b = -PRIOR * a, -PRIOR * b
    aa, ab, bb = PRIOR, 0.0, PRIOR
    for x, y, w in zip(points.xs, points.ys, points.weights, strict=True):
        p = _probability(a + b * x)
        error = w * (y - p)
        gradient_a += error
        gradient_b += error * x
        curve = w * p * (1.0 - p)
        aa += curve
        ab += curve * x
        bb += curve * x * x
    determinant = aa * bb - ab * ab
    step_a = (gradient_a * bb - gradient_b * ab) / determinant
    step_b = (gradient_b * aa - gradient_a * ab) / determinant
    size = max(abs(step_a), abs(step_b))
    shrunk = LARGEST_STEP / size if size > LARGEST_STEP else 1.0
    return step_a * shrunk, step_b * shrunk


def _probability(logit: float) -> float:
    if logit < -700.0:
        return 0.0
    return 1.0 / (1.0 + math.exp(-logit))


def _log_probability(logit: float) -> float:
    """log of the logistic function, without overflow."""
    return -math.log1p(math.exp(-logit)) if logit > -30.0 else logit
