"""Confidence sequences: seldom wrong however often one looks, and narrow enough to be of use."""

import random
from bisect import bisect_right

import msgspec
import pytest

from gateway.governance.sequential import (
    Mean,
    Rate,
    Spread,
    bin_of,
    edge_of,
    log_evidence,
    mean_interval,
    quantile_interval,
    rate_interval,
)

ALPHA = 0.05
RUNS = 600
LOOKS = 300


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.95, 1.0])
def test_a_true_rate_is_seldom_refuted_though_one_looks_after_every_sample(rate: float) -> None:
    chance = random.Random(f"rate {rate}")
    alarms = 0
    for _ in range(RUNS):
        seen = Rate()
        for _ in range(LOOKS):
            seen = seen.plus(chance.random() < rate)
            interval_misses = log_evidence(seen, rate) >= 2.9957  # log(1 / 0.05)
            if interval_misses:
                alarms += 1
                break
    assert alarms / RUNS <= ALPHA


def test_a_fixed_size_test_looked_at_as_often_would_cry_wolf() -> None:
    """The control: the same looks with a fixed-n interval break their level many times over."""
    chance = random.Random("wolf")
    alarms = 0
    for _ in range(RUNS):
        hits = 0
        for total in range(1, LOOKS + 1):
            hits += chance.random() < 0.5
            if total >= 10 and abs(hits / total - 0.5) > 1.96 * (0.25 / total) ** 0.5:
                alarms += 1
                break
    assert alarms / RUNS > 4 * ALPHA


def test_a_true_quantile_is_seldom_left_out() -> None:
    chance = random.Random("quantile")
    truth, misses = 100.0 * 2.995732, 0  # the 95% quantile of an exponential with mean 100
    for _ in range(150):
        spread = Spread()
        for count in range(1, LOOKS + 1):
            spread = spread.plus(chance.expovariate(1 / 100))
            if count % 10 == 0:
                found = quantile_interval(spread, 0.95, alpha=ALPHA)
                if not found.low <= truth <= found.high:
                    misses += 1
                    break
    assert misses / 150 <= ALPHA


def test_a_true_mean_is_seldom_left_out() -> None:
    chance = random.Random("mean")
    misses = 0
    for _ in range(RUNS):
        mean = Mean()
        for _ in range(LOOKS):
            mean = mean.plus(chance.betavariate(2, 1), alpha=ALPHA)
            found = mean_interval(mean, ALPHA)
            if not found.low <= 2 / 3 <= found.high:
                misses += 1
                break
    assert misses / RUNS <= ALPHA


def test_intervals_shrink_to_the_truth() -> None:
    chance = random.Random("narrow")
    rate, spread, mean = Rate(), Spread(), Mean()
    for _ in range(5_000):
        rate = rate.plus(chance.random() < 0.9)
        spread = spread.plus(chance.uniform(50, 150))
        mean = mean.plus(chance.random(), alpha=ALPHA)
    of_rate, of_mean = rate_interval(rate, ALPHA), mean_interval(mean, ALPHA)
    of_median = quantile_interval(spread, 0.5, alpha=ALPHA)
    assert of_rate.high - of_rate.low < 0.04
    assert of_mean.high - of_mean.low < 0.06
    assert 90 <= of_median.low <= 100 <= of_median.high <= 110


def test_nothing_seen_says_nothing() -> None:
    assert (rate_interval(Rate(), ALPHA).low, rate_interval(Rate(), ALPHA).high) == (0.0, 1.0)
    assert (mean_interval(Mean(), ALPHA).low, mean_interval(Mean(), ALPHA).high) == (0.0, 1.0)
    assert quantile_interval(Spread(), 0.5, alpha=ALPHA).low == 0.0


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0, 1.01, 17.0, 999.9, 1e9])
def test_a_value_lies_in_its_bin(value: float) -> None:
    place = bin_of(value)
    assert value <= edge_of(place) * (1 + 1e-12)
    assert place == 0 or value > edge_of(place - 1) * (1 - 1e-12)


def test_a_quantile_of_the_bins_is_the_samples_own_to_a_bin() -> None:
    chance = random.Random("bins")
    values = [chance.lognormvariate(4, 1) for _ in range(500)]
    spread = Spread()
    for value in values:
        spread = spread.plus(value)
    found = spread.quantile(0.9)
    assert 450 <= bisect_right(sorted(values), found) <= 450 + 25


def test_samples_survive_the_disk() -> None:
    spread, mean = Spread().plus(3.5).plus(700), Mean().plus(0.25, alpha=0.01)
    assert msgspec.json.decode(msgspec.json.encode(spread), type=Spread) == spread
    assert msgspec.json.decode(msgspec.json.encode(mean), type=Mean) == mean
    unbounded = quantile_interval(Spread().plus(5.0), 0.95, alpha=0.01)
    assert msgspec.json.decode(msgspec.json.encode(unbounded), type=type(unbounded)) == unbounded
