"""Small groups whose every exchange can be counted by hand."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.insight.permuting import compare, divergence, groups, holm


def test_the_p_value_comes_near_that_of_all_exchanges() -> None:
    """Ten records, all exchanges enumerated: the drawn share lies within five standard errors."""
    values = np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 1], dtype=float)
    table = np.stack([1 - values, values], axis=1)
    places = set(range(10))

    def kl(new: tuple[int, ...]) -> float:
        rest = sorted(places - set(new))
        sums = table[list(new)].sum(axis=0)[None, :], table[rest].sum(axis=0)[None, :]
        return float(divergence(*sums)[0])

    observed = kl((5, 6, 7, 8, 9))
    every = [kl(new) for new in combinations(range(10), 5)]
    exact = np.mean([one >= observed - 1e-9 for one in every])
    by = groups([0] * 10, baseline=5)
    (found,) = compare([table[by.places]], by, exchanges=4_000, chance=np.random.default_rng(1))
    assert found.kl == pytest.approx(observed)
    assert found.p == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 4_000))
    assert found.kl_by_chance == pytest.approx(np.mean(every), abs=0.02)


def test_labels_stay_within_their_stratum() -> None:
    """In each stratum the two groups are all alike, so no exchange ever looks otherwise."""
    strata = [0] * 6 + [1] * 2 + [0] * 2 + [1] * 6
    table = np.array([[1.0, 0.0] if one == 0 else [0.0, 1.0] for one in strata])
    by = groups(strata, baseline=8)
    (found,) = compare([table[by.places]], by, exchanges=200, chance=np.random.default_rng(2))
    assert found.p == 1.0
    assert found.kl == pytest.approx(0.0, abs=1e-12)
    mixed = groups([0] * 16, baseline=8)
    (alone,) = compare([table[mixed.places]], mixed, exchanges=200, chance=np.random.default_rng(2))
    assert alone.kl > 0.1


def test_what_has_no_counterpart_is_left_out() -> None:
    by = groups(["a", "a", "b", "a", "c"], baseline=3)
    assert list(by.places) == [0, 1, 3]
    assert by.sizes == (2, 1)
    assert list(by.weight) == [1.0, 1.0, 1.0]
    assert groups(["a", "b"], baseline=1).sizes == (0, 0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_the_p_value_and_bonferroni_and_keeps_the_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    for p, after in zip(ps, adjusted, strict=True):
        assert p <= after <= min(1.0, p * len(ps))
    by_p = [after for _, after in sorted(zip(ps, adjusted, strict=True))]
    assert by_p == sorted(by_p)
