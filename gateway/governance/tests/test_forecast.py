"""The forecast: work that is admitted counts where it will be done, at the time it gets there."""

import pytest

from gateway.governance.forecast import NOTHING_KNOWN, Station, doubted, forecast, served


def at(
    step: int, ahead: float, *, limit: int = 1, service_ms: float = 10, **more: float
) -> Station:
    return Station(step=step, limit=limit, ahead=ahead, service_ms=service_ms, **more)


def test_nothing_ahead_is_no_wait() -> None:
    seen = forecast([at(0, 0), at(1, 0)])
    assert (seen.wait_ms, seen.whole_ms) == (0, 20)


def test_free_slots_are_no_wait() -> None:
    assert forecast([at(0, 3, limit=4)]).wait_ms == 0
    assert forecast([at(0, 4, limit=4)]).wait_ms == pytest.approx(2.5)


def test_a_later_queue_drains_while_the_session_is_on_its_way() -> None:
    """Without it a gate before a slow last step would count its queue twice."""
    seen = forecast([at(0, 0, service_ms=100), at(1, 5)])
    assert seen.wait_ms == 0
    assert forecast([at(0, 0, service_ms=20), at(1, 5)]).wait_ms == pytest.approx(30)


def test_steps_one_after_another_add_up_and_calls_of_one_step_do_not() -> None:
    apart = forecast([at(0, 5), at(1, 20)])
    assert apart.wait_ms == pytest.approx(50 + 140)
    together = forecast([at(0, 5), at(0, 20)])
    assert together.wait_ms == pytest.approx(200)
    assert together.whole_ms == pytest.approx(210)


def test_a_place_that_few_sessions_go_to_counts_by_its_share() -> None:
    assert forecast([at(0, 100, share=0.1)]).wait_ms == pytest.approx(100)


def test_what_is_seen_counts_where_nothing_can_be_reckoned() -> None:
    """A target that hangs gives no new times; that nothing ends there tells."""
    assert forecast([at(0, 2, service_ms=0, stalled_ms=700)]).wait_ms == 700


def test_the_floor_is_one_call_where_the_wait_is_longest() -> None:
    seen = forecast([at(0, 9, service_ms=10), at(1, 9, service_ms=300)])
    assert seen.floor_ms == 300


def test_the_least_is_the_fastest_calls_of_the_steps_that_must_be_and_no_queue() -> None:
    seen = forecast(
        [
            at(0, 9, fastest_ms=7),
            at(1, 9, fastest_ms=5),
            at(1, 0, fastest_ms=3),
            at(2, 9, fastest_ms=100, share=0.5),
        ]
    )
    assert seen.least_ms == 12


def test_a_mean_moves_with_each_call_and_the_fastest_only_with_good_ones() -> None:
    known = served(NOTHING_KNOWN, 100, well=True, now_ms=1)
    assert (known.mean_ms, known.fastest_ms) == (100, 100)
    refused = served(known, 1, well=False, now_ms=1)
    assert refused.mean_ms == pytest.approx(90.1)
    assert refused.fastest_ms == pytest.approx(90.1), "never over the mean"
    assert served(known, 40, well=True, now_ms=1).fastest_ms == 40


def test_refusals_for_a_time_make_it_less_believed() -> None:
    """Else a target that was slow once would never be tried again."""
    known = served(NOTHING_KNOWN, 1_000, well=True, now_ms=1)
    for _ in range(14):
        known = doubted(known)
    assert known.fastest_ms < 500
    assert known.mean_ms == 1_000
