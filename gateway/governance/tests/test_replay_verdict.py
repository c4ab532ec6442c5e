"""Paired differences of recorded and replayed sessions, against limits."""

import random

from gateway.governance.replay_verdict import ReplayedPair, ReplayLimits, verdict
from gateway.governance.rollout_judging import Sample


def pair(
    before: tuple[bool, float] = (True, 100.0),
    after: tuple[bool, float] = (True, 100.0),
    *,
    calls: tuple[int, int] = (4, 4),
    fields: tuple[str, ...] = (),
    uncovered: bool = False,
) -> ReplayedPair:
    recorded, replayed = (
        Sample(succeeded=succeeded, fell_back=False, work_ms=ms)
        for succeeded, ms in (before, after)
    )
    return ReplayedPair(
        recorded=recorded, replayed=replayed, calls=calls, fields=fields, uncovered=uncovered
    )


def broken(pairs: list[ReplayedPair], limits: ReplayLimits = ReplayLimits()) -> list[str]:
    return [name for name, one in verdict(pairs, limits).figures.items() if not one.passed]


def test_equal_sessions_pass() -> None:
    found = verdict([pair()] * 50, ReplayLimits())
    assert found.passed
    assert (found.pairs, found.uncovered) == (50, 0)


def test_nothing_to_compare_is_no_pass() -> None:
    assert not verdict([], ReplayLimits()).passed
    assert not verdict([pair(uncovered=True)], ReplayLimits(uncovered_most=1.0)).passed


def test_each_figure_breaks_its_own_limit() -> None:
    good = [pair()] * 19
    assert broken([*good, pair(after=(False, 1.0))]) == ["success"]
    assert broken([*good, pair(fields=("/a",))]) == ["equal"]
    assert broken([pair(after=(True, 200.0))] * 20) == ["latency"]
    assert broken([pair(calls=(4, 8))] * 20) == ["calls"]
    assert broken([*good[:16], *[pair(uncovered=True)] * 4]) == ["uncovered"]


def test_a_session_that_failed_before_may_fail_again() -> None:
    assert broken([pair(), pair(before=(False, 5.0), after=(False, 5.0))] * 10) == []


def test_a_rise_within_the_slack_is_none() -> None:
    assert broken([pair(before=(True, 1.0), after=(True, 10.0))] * 10) == []
    assert broken([pair(before=(True, 1.0), after=(True, 40.0))] * 10) == ["latency"]


def test_strict_asks_the_interval() -> None:
    pairs = [pair()] * 20
    assert broken(pairs, ReplayLimits(success_drop=0.02)) == []
    assert "success" in broken(pairs, ReplayLimits(success_drop=0.02, strict=True))
    wide = ReplayLimits(success_drop=0.02, fallback_rise=0.02, strict=True)
    assert broken([pair()] * 2_000, wide) == []


def test_fields_are_counted_over_all_pairs() -> None:
    pairs = [pair(fields=("/a", "/b")), pair(fields=("/a",)), pair()]
    assert verdict(pairs, ReplayLimits()).fields == {"/a": 2, "/b": 1}


def test_the_intervals_hold_what_they_promise() -> None:
    """95% of them at least, near enough: the truth is known because it was drawn."""
    chance = random.Random("replay")
    held = {"success": 0, "latency": 0}
    for _ in range(300):
        pairs = []
        for _ in range(60):
            base = chance.lognormvariate(6, 0.3)
            after = (chance.random() < 0.8, base * chance.lognormvariate(0, 0.2))
            pairs.append(pair((chance.random() < 0.9, base), after))
        figures = verdict(pairs, ReplayLimits(latency_slack_ms=0.0)).figures
        for name, truth in (("success", -0.1), ("latency", 0.0)):
            interval = figures[name].interval
            held[name] += interval.low <= truth <= interval.high
    assert min(held.values()) >= 0.92 * 300
