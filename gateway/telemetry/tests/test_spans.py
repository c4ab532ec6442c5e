"""Trace context: W3C's rules, stable ids, one sampling decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.spans import TraceParent, parse_traceparent, session_span

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def hex_ids(digits: int) -> st.SearchStrategy[str]:
    return st.integers(1, 16**digits - 1).map(lambda number: f"{number:0{digits}x}")


@given(hex_ids(32), hex_ids(16), st.booleans())
def test_a_header_reads_back_as_it_was_written(trace: str, span: str, sampled: bool) -> None:
    at = TraceParent(trace, span, sampled)
    assert parse_traceparent(at.header()) == at


@given(st.text())
def test_any_text_is_read_or_ignored_never_an_error(text: str) -> None:
    parse_traceparent(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
    ],
)
def test_headers_that_w3c_forbids_are_ignored(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_later_version_with_more_fields_is_read_as_far_as_known() -> None:
    parsed = parse_traceparent(f"01-{TRACE}-{SPAN}-03-future")
    assert parsed == TraceParent(TRACE, SPAN, sampled=True)


def test_a_caller_decides_for_its_sessions() -> None:
    for sampled in (True, False):
        at = session_span("S1", TraceParent(TRACE, SPAN, sampled), ratio=1.0 - float(sampled))
        assert at.trace_id == TRACE
        assert at.span_id != SPAN
        assert at.sampled is sampled


def test_ids_are_the_same_after_a_crash_and_differ_between_sessions() -> None:
    assert session_span("S1", None, ratio=0.5) == session_span("S1", None, ratio=0.5)
    assert (
        session_span("S1", None, ratio=0.5).trace_id != session_span("S2", None, ratio=0.5).trace_id
    )


def test_children_differ_by_what_they_stand_for() -> None:
    session = session_span("S1", None, ratio=1.0)
    assert session.child("c1", "1") == session.child("c1", "1")
    assert len({session.child("c1", "1"), session.child("c1", "2"), session.child("c2", "1")}) == 3


@pytest.mark.parametrize(
    ("ratio", "least", "most"), [(0.0, 0, 0), (0.1, 60, 140), (1.0, 1000, 1000)]
)
def test_the_ratio_is_the_share_of_sessions_recorded(ratio: float, least: int, most: int) -> None:
    sampled = sum(session_span(f"S{n}", None, ratio=ratio).sampled for n in range(1000))
    assert least <= sampled <= most
