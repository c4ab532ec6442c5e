"""A window counts what is in it and nothing else, whatever comes when."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.sla_window import (
    NOTHING,
    SLICES,
    CallSample,
    Counts,
    Sample,
    SessionSample,
    Window,
)

WINDOW_MS = 12_000
SAMPLES = st.builds(CallSample, failed=st.booleans(), slow=st.booleans()) | st.builds(
    SessionSample, fell_back=st.booleans()
)
STORY = st.lists(st.tuples(st.integers(0, 3_000), SAMPLES), max_size=60)


def counted(samples: list[Sample]) -> Counts:
    total = NOTHING
    for sample in samples:
        total = total.plus(sample)
    return total


@given(STORY)
def test_it_counts_exactly_the_samples_of_the_slices_that_are_not_over(
    story: list[tuple[int, Sample]],
) -> None:
    window, now_ms = Window(window_ms=WINDOW_MS), 1_000_000
    all_: list[tuple[int, Sample]] = []
    for gap_ms, sample in story:
        now_ms += gap_ms
        all_.append((now_ms, sample))
        window = window.add(sample, now_ms)
        slice_ms = WINDOW_MS // SLICES
        first_ms = (now_ms // slice_ms - SLICES + 1) * slice_ms
        assert window.total == counted([s for at_ms, s in all_ if at_ms >= first_ms])
        assert len(window.slices) <= SLICES


@given(STORY)
def test_after_a_whole_window_of_silence_nothing_is_left(story: list[tuple[int, Sample]]) -> None:
    window, now_ms = Window(window_ms=WINDOW_MS), 1_000_000
    for gap_ms, sample in story:
        now_ms += gap_ms
        window = window.add(sample, now_ms)
    assert window.at(now_ms + WINDOW_MS).total == NOTHING


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=40))
def test_a_clock_that_jumps_back_loses_no_sample_and_counts_none_twice(gaps: list[int]) -> None:
    window, now_ms = Window(window_ms=10**9), 10**12
    for gap_ms in gaps:
        now_ms += gap_ms
        window = window.add(CallSample(), now_ms)
    assert window.total.calls == len(gaps)
