"""The three ways to get HTTP/2 and gRPC's own form wrong, for components and gateways alike."""

from conformance_tests.broken.tcp_layer import TcpRule
from conformance_tests.raw.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    SETTINGS,
    frame,
    literals,
    message,
)

STATUS_200 = b"\x88"
NOT_CLOSED = r"at: outcome: expected one of .*, got 'silent'"
ANSWERED = r"at: outcome: expected one of .*, got 'answered'"
NOT_SERVED = r"at: outcome: expected 'answered', got 'closed'"


def holds_on() -> TcpRule:
    """Bytes that are no HTTP/2 are neither answered nor the end of the connection."""
    return TcpRule(marker=b"PRI * HTTP/1.9", holds=True)


def answers_anything() -> TcpRule:
    """A message that is longer than its prefix says is answered with OK."""
    said = (
        frame(SETTINGS, b"", flags=0, stream=0),
        frame(HEADERS, STATUS_200, flags=END_HEADERS, stream=1),
        frame(DATA, message(b""), flags=0, stream=1),
        frame(HEADERS, literals({"grpc-status": "0"}), flags=END_HEADERS | END_STREAM, stream=1),
    )
    return TcpRule(marker=b"abcdefgh", answer=b"".join(said))


def turns_away() -> TcpRule:
    """After a connection that broke off, the next one is closed."""
    return TcpRule(marker=b"/conformance.Storm/", turns_away=True)
