"""One HTTP request as the handlers see it: headers, query, preferences, body. Pure ASGI.

What a client may get wrong is found here and named with its place; nothing here decides what the
request means. Reading a body stops at the limit, whatever the headers said.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import unquote, unquote_to_bytes

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.bounds import INT64_MAX
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.principal import LOCAL, NO_TRACE, Principal, Trace

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Digits of a number in a query or header, which has to fit the wire's int64.
_DIGITS_MAX: Final = 19
_SINGLE_HEADERS: Final = (b"host", b"authorization", b"origin", b"content-type")
_WAIT: Final = re.compile(r'\s*wait\s*=\s*"?([0-9]{1,9})"?\s*', re.IGNORECASE)


class ClientGone(Exception):
    """The client left before its request was read; there is nobody to answer."""


class HttpRequest:
    """A request that has a route. `params` are the decoded path segments, `body` the read body."""

    __slots__ = ("_receive", "body", "headers", "method", "params", "path", "principal", "query")

    def __init__(self, scope: Scope, receive: Receive, *, headers: Mapping[bytes, bytes]) -> None:
        self.method: Final[str] = scope["method"]
        self.path: Final[str] = scope["path"]
        self.headers: Final = headers
        self.query: Final[bytes] = scope["query_string"]
        self.params: tuple[str, ...] = ()
        self.principal: Principal = LOCAL
        self.body = b""
        self._receive = receive

    def header(self, name: str) -> str:
        """A header's value, empty when it was not sent."""
        return self.headers.get(name.encode(), b"").decode("latin-1")

    @property
    def trace(self) -> Trace:
        """The W3C headers; most requests have none."""
        headers = self.headers
        if b"traceparent" not in headers and b"baggage" not in headers:
            return NO_TRACE
        return Trace(
            traceparent=self.header(fields.TRACEPARENT),
            tracestate=self.header(fields.TRACESTATE),
            baggage=self.header(fields.BAGGAGE),
        )

    async def read_body(self, limit: int) -> None:
        """Read the whole body; PAYLOAD_TOO_LARGE beyond `limit`, before more is read."""
        stated = self.headers.get(b"content-length")
        if stated is not None and (size := _stated_length(stated)) > limit:
            raise too_large(size, limit)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise too_large(size, limit)
            chunks.append(chunk)
            if not message.get("more_body", False):
                break
        self.body = chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def gone(self) -> None:
        """Return once the client has left; only after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def one_value_headers(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by lower-case name; a header that decides something must not come twice.

    Of others the last counts, but `prefer` is a list and is joined.
    """
    headers = dict(pairs)
    if len(headers) != len(pairs):
        for name in _SINGLE_HEADERS:
            if sum(1 for key, _ in pairs if key == name) > 1:
                raise invalid_request(f"header {name.decode()}: must not be sent twice")
        if b"prefer" in headers:
            headers[b"prefer"] = b",".join(value for key, value in pairs if key == b"prefer")
    return headers


def query_values(query: bytes, allowed: tuple[str, ...]) -> dict[str, str]:
    """The query's parameters; each may come once, and only those the route names."""
    values: dict[str, str] = {}
    if not query:
        return values
    for part in query.split(b"&"):
        if not part:
            continue
        raw_name, _, raw_value = part.partition(b"=")
        name, value = _decoded(raw_name), _decoded(raw_value)
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise invalid_request(f"query {name!r}: no such parameter here; known: {known}")
        if name in values:
            raise invalid_request(f"query {name!r}: must not be given twice")
        values[name] = value
    return values


def count(text: str, place: str) -> int:
    """A whole number from a query or header; `place` names it in the error."""
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX:
        number = int(text)
        if number <= INT64_MAX:
            return number
    raise invalid_request(f"{place}: {text[:40]!r} is no whole number from 0 on")


def preferred_wait_s(prefer: str, cap_s: float) -> float:
    """Seconds of `Prefer: wait=N`, capped; 0 without one. What RFC 7240 cannot read is ignored."""
    if not prefer:
        return 0.0
    for preference in prefer.split(","):
        match = _WAIT.fullmatch(preference.partition(";")[0])
        if match is not None:
            return min(float(match[1]), cap_s)
    return 0.0


def segments(raw_path: bytes) -> tuple[str, ...] | None:
    """The path's segments, decoded after splitting, so that `%2F` is part of a name.

    None when it is no text: such a path belongs to no route.
    """
    try:
        parts = raw_path.decode("ascii").split("/")
        if b"%" in raw_path:
            parts = [unquote(part, errors="strict") for part in parts]
    except UnicodeDecodeError:
        return None
    return tuple(parts[1:])


def too_large(size: int, limit: int) -> AcpFailure:
    """A body over the limit."""
    message = f"body: {size} bytes or more; at most {limit} are taken (limits.max_request_bytes)"
    return AcpFailure(error(Reason.PAYLOAD_TOO_LARGE, message))


def _stated_length(stated: bytes) -> int:
    """What `content-length` says; its digits have no end, so no more are read than can count."""
    digits = stated.lstrip(b"0")
    return int(digits[: _DIGITS_MAX + 1] or b"0")


def _decoded(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise invalid_request("query: a parameter is not valid UTF-8") from None
