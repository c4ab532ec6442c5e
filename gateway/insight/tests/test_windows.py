"""Which sessions a window takes, and why it leaves the others out."""

import pytest

from acp_spec.model.enums import SessionStatus
from acp_spec.model.trajectory import FallbackRow, Trajectory
from gateway.insight.tests.records import START_MS, attempt, record
from gateway.insight.windows import LeftOut, Window


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (record(), None),
        (record(status=SessionStatus.FAILED), None),
        (record(status=SessionStatus.CANCELLED), LeftOut.CANCELLED),
        (record(status=SessionStatus.RUNNING), LeftOut.NOT_ENDED),
        (record(twin_of="s0"), LeftOut.TWIN),
        (record(fallback=FallbackRow(rule="r")), LeftOut.BY_RULES),
        (record(fallback=FallbackRow(probe=True)), None),
    ],
)
def test_only_sessions_that_components_brought_to_an_end_count(
    one: Trajectory, why: LeftOut | None
) -> None:
    assert Window().left_out(one) is why


def test_a_window_takes_its_beginning_and_not_its_end() -> None:
    window = Window(since_ms=START_MS, until_ms=START_MS + 10)
    assert [window.holds(record(begun_ms=at)) for at in (-1, 0, 9, 10)] == [
        False,
        True,
        True,
        False,
    ]


def test_ends_count_for_signals_as_they_do_for_metrics() -> None:
    window = Window(since_ms=START_MS, until_ms=START_MS + 10)
    assert not window.ended_in(record(begun_ms=5, took_ms=10))
    assert window.ended_in(record(begun_ms=-5, took_ms=10))
    assert not window.ended_in(record(ended_at=""))


def test_a_workflow_is_named_with_or_without_its_version() -> None:
    names = ("", "four", "four@1.0.0", "four@2.0.0", "fo")
    held = [Window(workflow=name).holds(record()) for name in names]
    assert held == [True, True, True, False, False]


def test_a_version_must_have_served_alone() -> None:
    old, new = attempt("c1"), attempt("c2", component_version="2.0.0")
    window = Window(versions={"desk": "1.0.0"})
    assert window.holds(record("s", old))
    assert not window.holds(record("s", old, new))
    assert not window.holds(record("s", new))
    assert not window.holds(record("s"))
