"""A half-life that is known is found again; one that cannot be known is not made up."""

import math
import random
from collections.abc import Iterator

import pytest

from acp_spec.model.enums import FeedbackKind
from gateway.rewards.decay_fit import DecayFit, FitVerdict, Sample, fit
from gateway.rewards.decay_samples import sample_of
from gateway.rewards.rules import HOUR_MS
from gateway.rewards.tests.records import said, trajectory

SIGNAL, LABEL = FeedbackKind.VALIDATION, FeedbackKind.OUTCOME


def made(
    count: int,
    half_life_hours: float,
    *,
    seed: int = 3,
    slope: float = 3.0,
    delays: tuple[float, float] = (0.1, 100.0),
) -> Iterator[Sample]:
    """Sessions whose label follows a signal as much as its weight says; delays in hours."""
    chance = random.Random(seed)
    low, high = (math.log(hours) for hours in delays)
    for number in range(count):
        hours = math.exp(chance.uniform(low, high))
        score = float(chance.random() < 0.5)
        logit = slope * 2.0 ** (-hours / half_life_hours) * (2 * score - 1)
        label = chance.random() < 1 / (1 + math.exp(-logit))
        signals = ((int(hours * HOUR_MS), score),)
        yield Sample(session_id=f"{seed}-{number}", signals=signals, label=label)


def covers(found: DecayFit, hours: float) -> bool:
    assert found.lower_hours is not None
    upper = math.inf if found.upper_hours is None else found.upper_hours
    return found.lower_hours <= hours <= upper


@pytest.mark.parametrize("hours", [2.0, 12.0])
def test_a_known_half_life_is_found_within_its_interval(hours: float) -> None:
    found = fit(made(700, hours))
    assert found.verdict is FitVerdict.FITTED, found
    assert covers(found, hours), found
    assert found.half_life_hours == pytest.approx(hours, rel=0.75)
    assert found.gain > 0.005, "held-out labels are likelier with it than without any fading"


def test_its_interval_covers_what_is_true_nearly_as_often_as_it_says() -> None:
    found = [fit(made(250, 6.0, seed=seed)) for seed in range(10, 18)]
    fits = [one for one in found if one.verdict is not FitVerdict.NOT_IDENTIFIABLE]
    assert len(fits) >= 7
    assert sum(covers(one, 6.0) for one in fits) >= len(fits) - 1


def test_delays_that_hardly_vary_identify_nothing_however_many_sessions_there_are() -> None:
    found = fit(made(700, 6.0, delays=(5.9, 6.1)))
    assert found.verdict is FitVerdict.NOT_IDENTIFIABLE
    assert "delays hardly vary (from 5.9" in found.reason
    assert (found.half_life_hours, found.lower_hours) == (None, None)


def test_signals_that_say_nothing_have_no_half_life() -> None:
    found = fit(made(400, 6.0, slope=0.0))
    assert found.verdict is FitVerdict.NOT_IDENTIFIABLE
    assert found.reason == "the signals say nothing of the labels"


def test_signals_that_never_fade_are_told_as_at_least() -> None:
    found = fit(made(500, 1e9))
    assert found.verdict is FitVerdict.AT_LEAST
    assert found.upper_hours is None
    assert found.lower_hours is not None
    assert found.lower_hours > 20


def test_too_few_labels_are_no_fit() -> None:
    found = fit(made(49, 6.0))
    assert found.verdict is FitVerdict.NOT_IDENTIFIABLE
    assert found.reason.startswith("49 labelled sessions with signals")
    assert fit([]).samples == 0


def test_the_order_of_the_samples_changes_nothing() -> None:
    samples = list(made(120, 6.0))
    assert fit(samples) == fit(reversed(samples))


def test_labels_that_were_drawn_count_alone_and_by_the_inverse_of_their_probability() -> None:
    """Volunteers who say the opposite do not shift it; unequal weights are worth fewer samples."""
    drawn = [
        Sample(session_id=s.session_id, signals=s.signals, label=s.label, probability=p)
        for s, p in zip(made(500, 6.0), [0.2, 0.8] * 250, strict=True)
    ]
    shouted = [
        Sample(session_id=s.session_id, signals=s.signals, label=not s.label)
        for s in made(500, 6.0, seed=2)
    ]
    found = fit([*drawn, *shouted])
    assert found == fit(drawn)
    assert (found.drawn_only, found.samples) == (True, 500)
    assert found.effective == pytest.approx((5 + 1.25) ** 2 / (25 + 1.5625) * 250)
    assert covers(found, 6.0)


def test_signals_before_the_label_are_samples_and_what_came_after_it_is_not() -> None:
    rows = (
        said(1.0, SIGNAL, delay_ms=1_000, author="linter"),
        said(0.0, SIGNAL, delay_ms=9_000, author="late"),
        said(0.2, LABEL, delay_ms=5_000, author="crm", sampling_probability=0.5),
    )
    found = sample_of(trajectory(feedback=rows), signal=SIGNAL, label=LABEL)
    assert found == Sample(session_id="s", signals=((1_000, 1.0),), label=False, probability=0.5)
    assert sample_of(trajectory(feedback=rows[:2]), signal=SIGNAL, label=LABEL) is None
    assert sample_of(trajectory(feedback=rows[1:]), signal=SIGNAL, label=LABEL) is None
