"""A session's events as server-sent events: numbered without gaps, resumable, bounded.

Nothing is buffered per client: the next event is read from the journal when the last one was taken
by the socket, and a client that takes nothing for a while is cut off. Only synced events come here.
"""

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import AcpError
from gateway.transports.http_request import HttpRequest, Send
from gateway.transports.http_response import Response, send_response
from gateway.transports.own_failures import attempted

Event = tuple[int, str, bytes]

# Each stream holds a socket and a task; a person's browser opens six at most.
STREAMS_MAX: Final = 2_000
# How long the first event is waited for before the headers leave: long enough to hear that the
# session is unknown, expired or over, which is read from memory or disk and never waits for a peer.
FIRST_EVENT_S: Final = 0.1
# A socket that takes nothing for so long belongs to nobody (proxies give up at 30 to 60 s).
STALLED_S: Final = 30.0
# A reconnecting browser waits so long; many at once after a restart would be a herd at 0.
_RETRY: Final = b"retry: 2000\n\n"
_HEARTBEAT: Final = b": alive\n\n"
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")
_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
)


class Stalled(Exception):
    """The client takes nothing any more."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The times of a stream, so that tests need not wait."""

    heartbeat_s: float
    first_event_s: float = FIRST_EVENT_S
    stalled_s: float = STALLED_S


class Streams:
    """The streams of one server: how many are open, and the end of all of them."""

    def __init__(self, limit: int = STREAMS_MAX) -> None:
        self._limit = limit
        self._open = 0
        self._closing: asyncio.Future[None] | None = None

    @property
    def is_full(self) -> bool:
        """True when the next stream must be refused."""
        return self._open >= self._limit

    @property
    def closing(self) -> "asyncio.Future[None]":
        """Done once every stream shall end."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
        return self._closing

    def close_all(self) -> None:
        """End every stream now; clients resume by Last-Event-ID, elsewhere or later."""
        if not self.closing.done():
            self.closing.set_result(None)

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count one stream while it is open."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class EventStream:
    """One client's stream from first byte to last."""

    def __init__(
        self, events: AsyncIterator[Event], request: HttpRequest, *, send: Send, times: StreamTimes
    ) -> None:
        self._events = events
        self._request = request
        self._send = send
        self._times = times
        self._next: asyncio.Task[Event | None] | None = None

    async def run(self, closing: "asyncio.Future[None]") -> None:
        """Answer the request; AcpFailure only before anything was sent."""
        gone = asyncio.create_task(self._request.gone())
        try:
            first = await self._wait_for_next({gone, closing}, self._times.first_event_s)
            if first.done() and first.result() is None:
                await send_response(self._send, Response(204))
                return
            await self._start()
            if self._request.method != "HEAD":
                await self._follow({gone, closing})
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            await cancelled(gone)
            if self._next is not None:
                await cancelled(self._next)
            await close_events(self._events)

    async def _start(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
        await self._write(_RETRY)

    async def _follow(self, ends: "set[asyncio.Future[None]]") -> None:
        while True:
            task = await self._wait_for_next(ends, self._times.heartbeat_s)
            if any(end.done() for end in ends):
                return
            if not task.done():
                await self._write(_HEARTBEAT)
                continue
            self._next = None
            event = await self._event_of(task)
            if event is None:
                return
            number, name, data = event
            await self._write(frame(number, name, data=data))

    async def _event_of(self, task: "asyncio.Task[Event | None]") -> Event | None:
        """The event, or None at the end. The headers have left, so a failure goes in the stream."""
        event = await attempted(task, where=self._request.path)
        if not isinstance(event, AcpError):
            return event
        await self._write(_error_frame(event))
        return None

    async def _wait_for_next(
        self, ends: "set[asyncio.Future[None]]", timeout_s: float
    ) -> "asyncio.Task[Event | None]":
        if self._next is None:
            self._next = asyncio.create_task(next_event(self._events))
        waited: set[asyncio.Future[None] | asyncio.Task[Event | None]] = {self._next, *ends}
        await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return self._next

    async def _write(self, chunk: bytes) -> None:
        message = {"type": "http.response.body", "body": chunk, "more_body": True}
        try:
            async with asyncio.timeout(self._times.stalled_s):
                await self._send(message)
        except TimeoutError:
            raise Stalled from None


def frame(number: int, name: str, *, data: bytes) -> bytes:
    """One event. A raw line end in JSON is white space, so a space may stand for it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), data.translate(_LINE_ENDS))


def _error_frame(failure: AcpError) -> bytes:
    """Has no id: it is no event of the session, and a resume must not skip one."""
    return b"event: error\ndata: %s\n\n" % json.encode_line(ErrorBody(error=failure))


async def next_event(events: AsyncIterator[Event]) -> Event | None:
    """The next event, or None at the end; made for a task of its own."""
    return await anext(events, None)


async def cancelled(task: "asyncio.Task[None] | asyncio.Task[Event | None]") -> None:
    """Cancel a task and return once it has ended, however it ends."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # seen; nobody is left to tell


async def close_events(events: AsyncIterator[Event]) -> None:
    """Let a generator of events release what it holds."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
