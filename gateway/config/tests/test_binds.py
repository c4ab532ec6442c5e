"""Addresses: read, written back, judged loopback or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.binds import PORT_MAX, Bind, parse_bind


@given(
    host=st.sampled_from(["127.0.0.1", "::1", "0.0.0.0", "localhost", "gateway.example"]),
    port=st.integers(0, PORT_MAX),
)
def test_an_address_reads_back_as_it_was_written(host: str, port: int) -> None:
    bind = Bind(host, port)
    assert parse_bind(str(bind)) == bind
    assert parse_bind(bind) is bind


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_only_addresses_of_this_machine_are_loopback(host: str, expected: bool) -> None:
    assert Bind(host, 80).is_loopback is expected


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:", "h:99999", "h:-1", "::1:80", 5])
def test_a_bad_address_is_refused_with_a_hint(text: object) -> None:
    with pytest.raises(ValueError, match=r"such as|over 65535"):
        parse_bind(text)
