"""Spans as light records of our own, and the W3C trace context they hang on.

Everything here is a value: ids are hashed from session ids, so a session that survives a crash goes
on in its trace. Sampling is decided once per session, before any span is made; an unsampled trace
still has ids, because `traceparent` travels in every request. Who sends records off is the
business of `span_export`.
"""

import enum
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import msgspec

TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<rest>-.*)?",
    re.ASCII,
)
VERSION_FORBIDDEN = "ff"
FLAG_SAMPLED = 0x01
# A session's header is read at each of its calls: as many as run at once (~0.5 KB each).
HEADERS_KEPT = 4_096
# OpenTelemetry's ratio samplers look at the low 56 bits; so do we, to agree with others.
SAMPLING_BITS = 56

AttributeValue = str | int | float | bool


class SpanKind(enum.Enum):
    """What the span stands for, seen from the gateway."""

    SERVER = "server"
    CLIENT = "client"
    INTERNAL = "internal"


class TraceParent(msgspec.Struct, frozen=True, gc=False):
    """Where a span hangs: its trace, its own id, and whether the trace is recorded."""

    trace_id: str
    span_id: str
    sampled: bool

    def header(self) -> str:
        """The `traceparent` header that names this span as the parent."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def child(self, *parts: str) -> "TraceParent":
        """A span below this one; the same parts give the same id, in replay too."""
        return TraceParent(self.trace_id, _hex_id(16, self.span_id, *parts), self.sampled)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span that ended. `error` is empty when it went well."""

    name: str
    at: TraceParent
    parent_span_id: str
    kind: SpanKind
    start_ns: int
    end_ns: int
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    links: tuple[TraceParent, ...] = ()
    error: str = ""


class Fate(enum.Enum):
    """What became of a span that was offered."""

    EXPORTED = "exported"
    QUEUE_FULL = "queue_full"
    NOT_TAKEN = "not_taken"
    REJECTED = "rejected"


class SpanSink(Protocol):
    """Takes finished spans; must return at once and never raise."""

    fates: dict[Fate, int]

    @property
    def waiting(self) -> int:
        """Spans that were neither sent nor lost yet."""

    def offer(self, record: SpanRecord) -> None:
        """Hand over one span; a full sink drops it and counts."""

    def close(self) -> None:
        """Send what waits, for a few seconds at most; blocks."""


class NoSpans:
    """The sink while tracing is off; who sees it makes no spans at all."""

    waiting = 0

    def __init__(self) -> None:
        self.fates = dict.fromkeys(Fate, 0)

    def offer(self, record: SpanRecord) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing waits."""


@lru_cache(HEADERS_KEPT)
def parse_traceparent(text: str) -> TraceParent | None:
    """The header's content, or None if W3C says to ignore it and start a new trace."""
    match = TRACEPARENT.fullmatch(text.strip(" \t"))
    if match is None or match["version"] == VERSION_FORBIDDEN:
        return None
    if match["version"] == "00" and match["rest"] is not None:
        return None
    if not match["trace"].strip("0") or not match["span"].strip("0"):
        return None
    sampled = bool(int(match["flags"], 16) & FLAG_SAMPLED)
    return TraceParent(match["trace"], match["span"], sampled)


def session_span(session_id: str, caller: TraceParent | None, *, ratio: float) -> TraceParent:
    """The span of a session: below the caller's if there is one, and recorded if that is.

    Without a caller the trace's own id decides, so that every gateway decides alike.
    """
    if caller is not None:
        return caller.child("session", session_id)
    trace_id = _hex_id(32, "trace", session_id)
    sampled = int(trace_id, 16) % (1 << SAMPLING_BITS) < ratio * (1 << SAMPLING_BITS)
    return TraceParent(trace_id, _hex_id(16, "session", session_id), sampled)


def _hex_id(digits: int, *parts: str) -> str:
    """An id hashed from parts; never all zeros, which W3C forbids."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:digits]
    return digest if digest != "0" * digits else "1".rjust(digits, "0")
