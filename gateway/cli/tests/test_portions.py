"""Portions: everything once and in order, none too heavy but one that is so by itself."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.portions import portions


@given(st.lists(st.integers(0, 12)), st.integers(1, 10))
def test_portions_are_everything_in_order_and_as_few_as_that_allows(
    weights: list[int], most: int
) -> None:
    found = list(portions(weights, weigh=int, most=most))
    assert [weight for portion in found for weight in portion] == weights
    assert all(portion and (sum(portion) <= most or len(portion) == 1) for portion in found)
    for portion, following in pairwise(found):
        assert sum(portion) + following[0] > most
