"""Games whose values stand in textbooks, and what holds for every game."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.insight import shapley
from gateway.insight.histories import Vector

games = st.lists(st.floats(-10, 10), min_size=8, max_size=8)


def of(values: list[float]) -> shapley.Values:
    return lambda coalition: np.array([values[coalition]])


def glove(coalition: int) -> Vector:
    """Players 0 and 1 have a left glove, 2 a right one; a pair is worth 1."""
    return np.array([float(bool(coalition & 0b011) and bool(coalition & 0b100))])


def test_the_glove_game() -> None:
    found = [float(share[0]) for share in shapley.exact(glove, 3)]
    assert found == pytest.approx([1 / 6, 1 / 6, 4 / 6])


@given(games)
def test_exact_shares_leave_no_rest(values: list[float]) -> None:
    total = sum(float(share[0]) for share in shapley.exact(of(values), 3))
    assert total == pytest.approx(values[-1] - values[0], abs=1e-9)


@given(games, st.integers(0, 2**32 - 1))
def test_drawn_shares_leave_no_rest_either(values: list[float], seed: int) -> None:
    orders = shapley.drawn_orders(3, 4, chance=np.random.default_rng(seed))
    total = sum(float(share[0]) for share in shapley.over_orders(of(values), orders))
    assert total == pytest.approx(values[-1] - values[0], abs=1e-9)


@given(games)
def test_all_orders_together_are_the_exact_shares(values: list[float]) -> None:
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    drawn = shapley.over_orders(of(values), orders)
    exact = shapley.exact(of(values), 3)
    assert np.allclose(drawn, exact, atol=1e-9)


def test_the_coalitions_of_an_order_and_its_reverse() -> None:
    assert shapley.coalitions_of([(0, 1, 2), (2, 1, 0)]) == [0, 0b1, 0b11, 0b111, 0b100, 0b110]
