"""Bytes that are no message, over gRPC, to every method of both servers."""

import contextlib
from typing import Final

import grpc
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.route import Route
from acp_spec.bindings.routes import COMPONENT_ROUTES, GATEWAY_ROUTES
from acp_spec.codec import proto
from acp_spec.codec.tests.strategies import messages
from gateway.tests.asking import Asker, Outcome
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.outcomes import SERVER_FAULTS, is_of_the_moment, no_fault

# Drains the echo component, or waits for a time that the message says.
METHODS: Final[dict[str, tuple[Route, ...]]] = {
    "gateway": tuple(route for route in GATEWAY_ROUTES if route.rpc),
    "echo": COMPONENT_ROUTES,
}


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


# What cannot be read as a message of any type here, and what only looks as if it could not.
BROKEN: Final[dict[str, bytes]] = {
    "a cut tag": b"\xff",
    "a cut length": b"\x0a\xff",
    "a length beyond the end": b"\x0a\x7fab",
    "a length of 2^63": b"\x0a" + varint(2**63) + b"ab",
    "an endless varint": b"\x08" + b"\xff" * 11,
    "field 0": b"\x00\x01",
    "wire type 6": b"\x0e\x01",
    "wire type 7": b"\x0f\x01",
    "a group without an end": b"\x0b" * 50,
    "an end without a group": b"\x0c",
    "groups in groups": b"\x0b" * 5_000 + b"\x0c" * 5_000,
    "text that is no UTF-8": field(1, b"\xff\xfe"),
    "messages in messages": b"",
}
LENIENT: Final[dict[str, bytes]] = {
    "an unknown field": field(1000, b"x" * 100_000),
    "the largest field number": field(2**29 - 1, b"x"),
    "unknown fields without end": field(1000, b"") * 100_000,
    "a field a hundred thousand times": field(1, b"x") * 100_000,
    "a varint where text is": b"\x08\x01",
    "text where a number is": field(3, b"x" * 10),
}


def nested(depth: int) -> bytes:
    """Messages in field 1 of messages."""
    data = b""
    for _ in range(depth):
        data = field(1, data)
    return data


@pytest.mark.parametrize("attack", sorted(BROKEN))
def test_what_is_no_message_is_the_callers_fault(target: Target, attack: str) -> None:
    data = BROKEN[attack] or nested(2_000)
    with target.asker() as asker:
        for route in METHODS[target.name]:
            told = asker.call(route, data)
            no_fault(told, (route.name, attack))
            if not told.is_success and "empty" not in told.message:
                assert told.code in CLIENT_FAULTS, (route.name, told)


CLIENT_FAULTS: Final = ("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION")


@pytest.mark.parametrize("method", ["Check", "Watch", "List"])
def test_a_librarys_service_is_no_way_to_fill_the_log(target: Target, method: str) -> None:
    """Its messages are read by the library, which tells of each failure with a traceback."""
    path = f"/grpc.health.v1.Health/{method}"
    with grpc.insecure_channel(target.grpc) as channel:
        for data in BROKEN.values():
            stream = channel.unary_stream(path)(data or nested(2_000), timeout=2)
            with contextlib.suppress(grpc.RpcError):
                next(stream)
            stream.cancel()
    target.assert_well()


@pytest.mark.parametrize("attack", sorted(LENIENT))
def test_what_is_odd_is_read_or_is_the_callers_fault(target: Target, attack: str) -> None:
    with target.asker() as asker:
        for route in METHODS[target.name]:
            no_fault(asker.call(route, LENIENT[attack]), (route.name, attack))


@pytest.mark.parametrize("size_mib", [5, 7, 9, 30])
def test_a_message_over_the_limit_is_refused_as_too_large(target: Target, size_mib: int) -> None:
    data = field(1000, b"\0" * (size_mib * 1024 * 1024))
    with target.asker() as asker:
        for route in METHODS[target.name][:3]:
            told = asker.call(route, data)
            assert told.code == "RESOURCE_EXHAUSTED", (route.name, told)
            assert told.reason in ("PAYLOAD_TOO_LARGE", ""), told
    target.assert_well()


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_bytes_whatever_are_a_fault_of_the_server(target: Target, data: st.DataObject) -> None:
    with target.asker() as asker:
        route = data.draw(st.sampled_from(METHODS[target.name]))
        sent = data.draw(st.binary(max_size=60) | st.builds(damaged, messages(route.rpc_in), cuts))
        told = asker.call(route, sent)
        assert is_of_the_moment(told) or told.code not in SERVER_FAULTS, (route.name, told)


cuts = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255), st.integers(0, 2)), max_size=4)


def damaged(message: msgspec.Struct, changes: list[tuple[int, int, int]]) -> bytes:
    """The message's bytes with some put in, taken out or changed."""
    data = bytearray(proto.to_proto(message))
    for at, byte, how in changes:
        place = at % (len(data) + 1)
        if how == 0:
            data.insert(place, byte)
        elif how == 1 and place < len(data):
            del data[place]
        elif place < len(data):
            data[place] = byte
    return bytes(data)


def answer(asker: Asker, route: Route) -> Outcome:
    return asker.call(route, b"")
