"""Reading queries, headers and paths: whatever a client sends is a value or a named fault."""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.errors import AcpError, AcpFailure
from gateway.transports.http_request import (
    HttpRequest,
    Message,
    count,
    one_value_headers,
    preferred_wait_s,
    query_values,
    segments,
)

NAMES = ("status", "workflow", "after")
T = TypeVar("T")


def refusal_or(read: Callable[[], T]) -> T | AcpError:
    """What was read, or the error."""
    try:
        return read()
    except AcpFailure as failure:
        return failure.error


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_a_query_of_known_names_comes_back_as_it_was_encoded(values: dict[str, str]) -> None:
    query = urlencode(values, errors="surrogatepass").encode()
    found = refusal_or(lambda: query_values(query, NAMES))
    has_surrogate = any("\ud800" <= c <= "\udfff" for text in values.values() for c in text)
    assert isinstance(found, AcpError) if has_surrogate else found == values


@given(st.binary(max_size=200))
def test_any_query_is_read_or_refused_as_the_clients_fault(query: bytes) -> None:
    values = refusal_or(lambda: query_values(query, NAMES))
    if isinstance(values, AcpError):
        assert values.reason == "INVALID_REQUEST"
        assert values.message.startswith("query")
    else:
        assert set(values) <= set(NAMES)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (b"colour=red", "no such parameter"),
        (b"status=A&status=B", "twice"),
        (b"status=%ff", "UTF-8"),
    ],
)
def test_a_wrong_query_says_what_is_wrong(query: bytes, said: str) -> None:
    with pytest.raises(AcpFailure) as caught:
        query_values(query, NAMES)
    assert said in caught.value.error.message


@given(st.text())
def test_a_count_is_a_whole_number_or_refused_with_its_place(text: str) -> None:
    number = refusal_or(lambda: count(text, "query limit"))
    if isinstance(number, AcpError):
        assert number.message.startswith("query limit")
    else:
        assert number == int(text or "0") >= 0


@pytest.mark.parametrize(
    ("prefer", "wait_s"),
    [
        ("", 0),
        ("wait=5", 5),
        ("respond-async, wait=10", 10),
        ("WAIT = 7", 7),
        ('wait="3"', 3),
        ("wait=4; foo=bar", 4),
        ("wait=900", 60),
        ("wait=2, wait=9", 2),
        ("wait", 0),
        ("wait=", 0),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait=abc", 0),
        ("waiting=5", 0),
    ],
)
def test_prefer_wait_is_read_as_rfc_7240_says_and_capped(prefer: str, wait_s: float) -> None:
    assert preferred_wait_s(prefer, 60) == wait_s


@given(st.text())
def test_no_prefer_header_ever_fails_a_request(prefer: str) -> None:
    assert 0 <= preferred_wait_s(prefer, 60) <= 60


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_segments_are_decoded_after_they_were_split(parts: list[str]) -> None:
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    assert segments(path.encode()) == tuple(parts)


@given(st.binary())
def test_a_path_that_is_no_text_has_no_segments_and_no_crash(raw: bytes) -> None:
    found = segments(raw)
    assert found is None or isinstance(found, tuple)


def test_a_header_that_decides_something_must_not_come_twice() -> None:
    for name in (b"host", b"authorization", b"origin", b"content-type"):
        with pytest.raises(AcpFailure, match=name.decode()):
            one_value_headers([(name, b"a"), (name, b"b")])


def test_prefer_headers_are_one_list() -> None:
    headers = one_value_headers([(b"prefer", b"respond-async"), (b"prefer", b"wait=3")])
    assert headers[b"prefer"] == b"respond-async,wait=3"


def read(chunks: list[bytes], limit: int, stated: str = "") -> bytes:
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": n < len(chunks) - 1}
        for n, chunk in enumerate(chunks)
    ]

    async def receive() -> Message:
        return messages.pop(0)

    headers = {b"content-length": stated.encode()} if stated else {}
    scope = {"method": "POST", "path": "/", "query_string": b""}
    request = HttpRequest(scope, receive, headers=headers)
    asyncio.run(request.read_body(limit))
    assert not messages, "the body was read to its end"
    return request.body


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=10))
def test_a_body_in_pieces_is_the_body(chunks: list[bytes]) -> None:
    assert read(chunks, 1000) == b"".join(chunks)


def test_a_body_over_the_limit_is_refused_before_more_is_read() -> None:
    with pytest.raises(AcpFailure, match="at most 10"):
        read([b"12345", b"67890", b"1", b"never read"], 10)


def test_a_stated_length_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(AcpFailure, match="PAYLOAD_TOO_LARGE"):
        read([b""], 10, stated="11")
