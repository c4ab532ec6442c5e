"""Events come out whole, however the stream was cut into chunks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.sdk import event_stream
from acp_spec.sdk.event_stream import EventReader, EventTooLong, Frame, error_text

STREAM = (
    b"retry: 250\n\n: heartbeat\n\n"
    b'id: 1\nevent: Opened\ndata: {"n":9007199254740993}\n\n'
    b"id: 2\r\nevent: Ended\r\ndata: one\r\ndata: two\r\nother: x\r\n\r\n"
    b"event: no data\n\n"
    b"data\n\n"
)
FRAMES = [
    Frame(id="1", type="Opened", data=b'{"n":9007199254740993}'),
    Frame(id="2", type="Ended", data=b"one\ntwo"),
    Frame(id="", type="", data=b""),
]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_frames_do_not_depend_on_how_the_bytes_arrive(cuts: list[int]) -> None:
    reader = EventReader()
    places = [0, *sorted(cuts), len(STREAM)]
    frames = [frame for start, end in pairwise(places) for frame in reader.feed(STREAM[start:end])]
    assert frames == FRAMES
    assert reader.retry_ms == 250


def test_an_event_keeps_its_data_byte_for_byte() -> None:
    event = FRAMES[0].event()
    assert (event.id, event.type) == (1, "Opened")
    assert bytes(event.data) == b'{"n":9007199254740993}'


def test_an_error_frame_is_told_from_an_event_of_that_name() -> None:
    assert error_text(Frame(id="", type="error", data=b'{"error":{}}')) == b'{"error":{}}'
    assert error_text(Frame(id="7", type="error", data=b"{}")) is None
    assert error_text(Frame(id="", type="error", data=b"not json")) == b"{}"


def test_an_event_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "EVENT_BYTES_MAX", 100)
    reader = EventReader()
    chunk = b"data: " + b"x" * 90 + b"\n"
    assert list(reader.feed(chunk)) == []
    with pytest.raises(EventTooLong):
        list(reader.feed(chunk))
