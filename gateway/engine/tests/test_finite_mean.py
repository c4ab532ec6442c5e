"""A mean is there whatever the numbers, and is that of exact arithmetic where a sum is."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.finite_mean import mean_of

LARGEST = 1.7e308


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_it_is_the_exact_mean_in_any_order(values: list[float]) -> None:
    exact = float(sum(map(Fraction, values))) / len(values)
    assert mean_of(values) == exact == mean_of(values[::-1])


@given(st.lists(st.sampled_from([LARGEST, -LARGEST, 1.0]), min_size=1, max_size=20))
def test_it_lies_within_its_numbers_also_where_they_have_no_sum(values: list[float]) -> None:
    found = mean_of(values)
    assert min(values) <= found or found == pytest.approx(min(values))
    assert found <= max(values) or found == pytest.approx(max(values))
