"""The HTTP front of a component: pure ASGI between bytes and the dispatcher (SPEC section 1).

Routes come from `bindings.routes`; whatever goes wrong is an ACP error body with the status that
the table gives. It enforces only what needs bytes: method, media type, size. All other rules are
the dispatcher's, so that gRPC has the same.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import http_status
from acp_spec.bindings.routes import COMPONENT_ROUTES, Route
from acp_spec.codec import json
from acp_spec.model.calls import (
    CancelRequest,
    ErrorBody,
    ExecuteRequest,
    ObserveRequest,
    PlanRequest,
    Progress,
    ReflectRequest,
    Request,
)
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.arrival import Arrival
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.faults import refusal
from acp_spec.sdk.handling import Outcome

# The ASGI specification's own shapes; the server that calls us is untyped here.
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

PROGRESS_QUEUE_MAX = 1000
"""Unread progress lines kept per stream; more is dropped: progress is news, not a result."""

_REQUEST_TYPES: dict[str, type[Request]] = {
    "plan": PlanRequest,
    "execute": ExecuteRequest,
    "observe": ObserveRequest,
    "reflect": ReflectRequest,
}
_CONTENT_LENGTH = re.compile(r"[0-9]{1,18}")
_TIMEOUT = re.compile(r"[0-9]{1,15}")


class HttpFront:
    """An ASGI application that serves one dispatcher below `base` (such as `/ledger`)."""

    def __init__(self, dispatcher: Dispatcher, *, base: str = "") -> None:
        self._dispatcher = dispatcher
        self._base = base.rstrip("/")
        self._max_bytes = dispatcher.component.limits.max_request_bytes
        self._fixed = _fixed_routes()
        self._templates = [route for route in COMPONENT_ROUTES if "{" in route.path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            assert scope["type"] == "websocket", "the server must run with lifespan off"
            await send({"type": "websocket.close", "code": 1000})
            return
        exchange = _Exchange(scope, receive, send)
        try:
            arrival = self._arrival(exchange.headers)
            route, call_id = self._route(exchange)
            self._dispatcher.check_peer(arrival)
            await self._serve(route, call_id, exchange=exchange, arrival=arrival)
        except AcpFailure as failure:
            await exchange.answer_error(ErrorBody(error=failure.error))

    async def _serve(
        self, route: Route, call_id: str, *, exchange: "_Exchange", arrival: Arrival
    ) -> None:
        if route.role is not None:
            body = await exchange.body(self._max_bytes)
            request = json.decode_request(
                _REQUEST_TYPES[route.name], body, max_bytes=self._max_bytes
            )
            if isinstance(request, ExecuteRequest) and exchange.wants_stream():
                await self._stream(request, arrival, exchange=exchange)
            else:
                await exchange.answer(await self._dispatcher.call(request, arrival))
            return
        await exchange.answer(await self._ask(route, call_id, exchange=exchange, arrival=arrival))

    async def _ask(
        self, route: Route, call_id: str, *, exchange: "_Exchange", arrival: Arrival
    ) -> msgspec.Struct:
        match route.name:
            case "describe":
                return self._dispatcher.describe(arrival)
            case "health":
                return self._dispatcher.health(arrival)
            case "get_operation":
                return await self._dispatcher.get_operation(call_id, arrival)
            case "cancel_operation":
                return await self._dispatcher.cancel_operation(call_id, arrival)
            case "cancel":
                stated = json.decode_request(CancelRequest, await exchange.body(self._max_bytes))
                if stated.call_id not in ("", call_id):
                    raise refusal(
                        Reason.INVALID_REQUEST,
                        "call_id in the body differs from the one in the URL.",
                    )
                return await self._dispatcher.cancel(
                    CancelRequest(call_id=call_id, attempt=stated.attempt), arrival
                )
            case unknown:
                raise AssertionError(f"no handler for route {unknown}")

    async def _stream(
        self, request: ExecuteRequest, arrival: Arrival, *, exchange: "_Exchange"
    ) -> None:
        """Progress lines as they come, the response as the last one.

        The status is that of the outcome unless progress was sent before it was known.
        """
        lines: asyncio.Queue[Progress | None] = asyncio.Queue(PROGRESS_QUEUE_MAX)
        working = asyncio.ensure_future(
            self._dispatcher.call(request, arrival, on_progress=lambda line: _offer(lines, line))
        )
        working.add_done_callback(lambda _: _close(lines))
        while (line := await lines.get()) is not None:
            await exchange.stream_line(json.encode_line(line))
        await exchange.end_stream(await working)

    def _route(self, exchange: "_Exchange") -> tuple[Route, str]:
        path = exchange.path
        if not path.startswith(self._base):
            raise _unknown(path)
        path = path[len(self._base) :]
        routes, call_id = self._fixed.get(path), ""
        if routes is None:
            routes, call_id = self._templated(path)
        route = routes.get(exchange.method)
        if route is not None:
            return route, call_id
        exchange.allow = ", ".join(sorted(routes))
        raise refusal(
            Reason.METHOD_NOT_ALLOWED, f"{path} takes {exchange.allow}, not {exchange.method}."
        )

    def _templated(self, path: str) -> tuple[dict[str, Route], str]:
        parts = path.split("/")
        for route in self._templates:
            pattern = route.path.split("/")
            if len(parts) == len(pattern) and all(
                expected in (given, "{call_id}")
                for expected, given in zip(pattern, parts, strict=True)
            ):
                call_id = parts[pattern.index("{call_id}")]
                return {route.method: route}, unquote_to_bytes(call_id).decode("utf-8", "replace")
        raise _unknown(path)

    def _arrival(self, headers: dict[str, str]) -> Arrival:
        stated = headers.get(fields.ACP_TIMEOUT_MS)
        if stated is not None and not _TIMEOUT.fullmatch(stated):
            raise refusal(
                Reason.INVALID_REQUEST, f"{fields.ACP_TIMEOUT_MS} must be a number of milliseconds."
            )
        return Arrival(
            at_ms=self._dispatcher.clock.monotonic_ms(),
            timeout_ms=None if stated is None else float(stated),
            acp_version=headers.get(fields.ACP_VERSION),
            idempotency_key=headers.get(fields.IDEMPOTENCY_KEY),
            authorization=headers.get(fields.AUTHORIZATION),
            traceparent=headers.get(fields.TRACEPARENT),
            tracestate=headers.get(fields.TRACESTATE),
        )


class _Exchange:
    """One request and its answer, as ASGI messages."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.allow = ""
        self._receive = receive
        self._send = send
        self._streaming = False

    def wants_stream(self) -> bool:
        return fields.NDJSON in self.headers.get("accept", "")

    async def body(self, max_bytes: int) -> bytes:
        """The whole body; refuses a wrong media type and more than `max_bytes`, read no further."""
        stated = self.headers.get("content-length", "")
        if _CONTENT_LENGTH.fullmatch(stated) and int(stated) > max_bytes:
            raise _too_large(max_bytes)
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise refusal(Reason.CANCELLED, "The caller closed the connection.")
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > max_bytes:
                raise _too_large(max_bytes)
            parts.append(part)
            more = message.get("more_body", False)
        if size:
            self._check_media_type()
        return b"".join(parts)

    def _check_media_type(self) -> None:
        stated = self.headers.get(fields.CONTENT_TYPE, "").partition(";")[0].strip().lower()
        if stated != fields.JSON:
            raise refusal(
                Reason.UNSUPPORTED_MEDIA_TYPE,
                f"Send `content-type: {fields.JSON}`, not {stated or 'none'!r}.",
            )

    async def answer(self, message: msgspec.Struct) -> None:
        if isinstance(message, ErrorBody):
            await self.answer_error(message)
            return
        await self._whole(200, json.encode(message))

    async def answer_error(self, body: ErrorBody) -> None:
        await self._whole(
            http_status(body.error), json.encode(body), extra=_error_headers(body, self)
        )

    async def stream_line(self, line: bytes) -> None:
        """Send one NDJSON line and let the caller have it now."""
        if not self._streaming:
            self._streaming = True
            await self._start(200, [(b"content-type", fields.NDJSON.encode())])
        await self._send({"type": "http.response.body", "body": line + b"\n", "more_body": True})

    async def end_stream(self, outcome: Outcome) -> None:
        line = json.encode_line(outcome) + b"\n"
        if not self._streaming:
            status = http_status(outcome.error) if isinstance(outcome, ErrorBody) else 200
            await self._start(status, [(b"content-type", fields.NDJSON.encode())])
        await self._send({"type": "http.response.body", "body": line})

    async def _whole(
        self, status: int, body: bytes, *, extra: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        headers = [
            (b"content-type", fields.JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            *extra,
        ]
        await self._start(status, headers)
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


def _fixed_routes() -> dict[str, dict[str, Route]]:
    fixed: dict[str, dict[str, Route]] = {}
    for route in COMPONENT_ROUTES:
        if "{" not in route.path:
            fixed.setdefault(route.path, {})[route.method] = route
    return fixed


def _error_headers(body: ErrorBody, exchange: _Exchange) -> tuple[tuple[bytes, bytes], ...]:
    extra: list[tuple[bytes, bytes]] = []
    if body.error.retry_after_ms is not None:
        seconds = -(-body.error.retry_after_ms // 1000)
        extra.append((fields.RETRY_AFTER.encode(), str(seconds).encode()))
    if exchange.allow:
        extra.append((b"allow", exchange.allow.encode()))
    if body.error.reason == Reason.UNAUTHENTICATED.value:
        extra.append((b"www-authenticate", b"Bearer"))
    if body.error.reason == Reason.PAYLOAD_TOO_LARGE.value:
        extra.append((b"connection", b"close"))  # the rest of the body was not read
    return tuple(extra)


def _unknown(path: str) -> AcpFailure:
    known = ", ".join(route.path for route in COMPONENT_ROUTES)
    return refusal(Reason.NOT_FOUND, f"There is no {path[:200]} here; ACP has: {known}.")


def _too_large(max_bytes: int) -> AcpFailure:
    return refusal(
        Reason.PAYLOAD_TOO_LARGE, f"The request is larger than the {max_bytes} bytes taken here."
    )


def _offer(lines: "asyncio.Queue[Progress | None]", line: Progress) -> None:
    if not lines.full():
        lines.put_nowait(line)


def _close(lines: "asyncio.Queue[Progress | None]") -> None:
    """The end must get in even when nobody reads: the last progress line gives way."""
    if lines.full():
        lines.get_nowait()
    lines.put_nowait(None)
