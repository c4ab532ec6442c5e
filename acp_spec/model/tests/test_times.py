"""RFC 3339 without a clock agrees with the standard library's calendar."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model import times
from acp_spec.model.times import parse_rfc3339, rfc3339

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
LAST_MS = 253_402_300_799_999


@given(st.integers(min_value=0, max_value=LAST_MS))
def test_written_times_are_those_of_the_calendar(time_ms: int) -> None:
    expected = EPOCH + datetime.timedelta(milliseconds=time_ms)
    assert rfc3339(time_ms) == expected.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03}Z"


@given(st.integers(min_value=0, max_value=LAST_MS))
def test_what_is_written_is_read_back(time_ms: int) -> None:
    assert parse_rfc3339(rfc3339(time_ms)) == time_ms


@given(st.datetimes(timezones=st.timezones(), min_value=datetime.datetime(1971, 1, 1)))
def test_offsets_are_read(moment: datetime.datetime) -> None:
    text = moment.isoformat(timespec="milliseconds")
    offset = moment.utcoffset() or datetime.timedelta()
    if offset.total_seconds() % 60 == 0:
        milliseconds = (moment - EPOCH) // datetime.timedelta(milliseconds=1)
        assert abs((parse_rfc3339(text) or 0) - milliseconds) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-29",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+25:00",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_rfc3339(text) is None


def test_a_fraction_of_any_length_is_read_and_what_is_long_is_not_kept() -> None:
    short, long = "2026-11-29T15:14:16.123Z", f"2026-11-29T15:14:16.123{'0' * 500}Z"
    kept = times._short.cache_info().currsize
    assert parse_rfc3339(long) == parse_rfc3339(short)
    assert parse_rfc3339("x" * 500) is None
    assert times._short.cache_info().currsize <= kept + 1
