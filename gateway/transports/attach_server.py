"""`acp.v1.Attach` on the gateway's gRPC port: the two streams of components that dial in.

This is the border: who may come in, bytes to frames, and the end of a stream. It must not hang a
stop of the gateway: whatever waits here also waits for the link's end.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final, TypeAlias

import grpc

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error, grpc_status
from acp_spec.codec import frames
from acp_spec.codec.error_trailer import encode_trailer
from acp_spec.model.attach import Hello
from acp_spec.model.calls import ErrorBody
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.sdk.attach_outbox import Outbox, pump
from gateway.runtime.principal import Principal, Scope
from gateway.telemetry.logs import get_log
from gateway.transports.attach_hub import AttachHub
from gateway.transports.attach_link import Link
from gateway.transports.auth import Gate, allow, check_version, metadata_of

CONTROL_RPC: Final = "/acp.v1.Attach/Control"
CALLS_RPC: Final = "/acp.v1.Attach/Calls"
# As long as a caller's first bytes may take anywhere; a stream that says nothing costs a task.
FIRST_MESSAGE_S: Final = 10.0
# A peer that does not read for so long loses the status of the stream, not only its content.
WRITTEN_WITHIN_S: Final = 2.0
STATUS_MESSAGE_MAX: Final = 1_000
_STATUS: Final = {code.value[0]: code for code in grpc.StatusCode}

Context: TypeAlias = grpc.aio.ServicerContext
log = get_log(__name__)


class AttachHandler:
    """Has the two methods. Give it to GrpcServer as `extra`."""

    def __init__(self, hub: AttachHub, gate: Gate) -> None:
        self._hub = hub
        self._gate = gate
        self.handlers = {
            CONTROL_RPC: grpc.stream_stream_rpc_method_handler(self._control),
            CALLS_RPC: grpc.stream_stream_rpc_method_handler(self._calls),
        }

    async def _control(self, _requests: AsyncIterator[bytes], context: Context) -> None:
        try:
            principal = self._principal(context)
            await self._hub.opened()
            link = await self._welcomed(context, principal)
        except AcpFailure as failure:
            await _abort(failure.error, context)
            return
        try:
            writing = Writing(link.control, context, join=frames.control)
            await _both(link, self._hear(link, context), writing=writing)
        finally:
            self._hub.dropped(link)
        if link.why is not None:
            await _abort(link.why, context)

    async def _calls(self, _requests: AsyncIterator[bytes], context: Context) -> None:
        try:
            self._principal(context)
            first = await _first(context)
            max_bytes = self._hub.options.max_response_bytes
            attachment_id, received = frames.read_component_calls(first, max_bytes=max_bytes)
            link, attached = self._hub.find(attachment_id)
        except AcpFailure as failure:
            await _abort(failure.error, context)
            return

        def receive(data: bytes) -> None:
            _, found = frames.read_component_calls(data, max_bytes=max_bytes)
            attached.connection.receive(found)

        try:
            attached.connection.receive(received)
            reading = _read_all(context, receive)
            writing = Writing(link.calls, context, join=frames.gateway_calls)
            await _both(link, reading, writing=writing)
        finally:
            self._hub.dropped(link)
        if link.why is not None:
            await _abort(link.why, context)

    async def _welcomed(self, context: Context, principal: Principal) -> Link:
        said = frames.read_component_control(await _first(context))
        if not said or not isinstance(said[0], Hello):
            text = "a control stream begins with hello"
            raise AcpFailure(error(Reason.INVALID_REQUEST, text))
        link = self._hub.hello(said[0], principal)
        for more in said[1:]:
            await self._hub.said(link, more)
        return link

    async def _hear(self, link: Link, context: Context) -> None:
        """Until the component ends the stream, or falls silent."""
        while True:
            try:
                async with asyncio.timeout(self._hub.options.silence_s):
                    data = await context.read()
            except TimeoutError:
                text = f"no heartbeat within {self._hub.options.silence_s:g} s"
                raise AcpFailure(error(Reason.TIMEOUT, text, boundary=Boundary.CLIENT)) from None
            if data is grpc.aio.EOF:
                return
            self._principal(context)  # a token that was revoked meanwhile ends the streams
            for said in frames.read_component_control(data):
                await self._hub.said(link, said)

    def _principal(self, context: Context) -> Principal:
        metadata = metadata_of(context.invocation_metadata() or ())
        check_version(metadata.get(fields.ACP_VERSION, ""))
        principal = self._gate.caller(metadata.get(fields.AUTHORIZATION, ""))
        allow(principal, Scope.COMPONENT)
        return principal


async def _first(context: Context) -> bytes:
    try:
        async with asyncio.timeout(FIRST_MESSAGE_S):
            data = await context.read()
    except TimeoutError:
        text = f"no message within {FIRST_MESSAGE_S:g} s"
        raise AcpFailure(error(Reason.TIMEOUT, text, boundary=Boundary.CLIENT)) from None
    if data is grpc.aio.EOF:
        raise AcpFailure(error(Reason.INVALID_REQUEST, "the stream ended before its first message"))
    return bytes(data)


async def _read_all(context: Context, receive: Callable[[bytes], None]) -> None:
    while (data := await context.read()) is not grpc.aio.EOF:
        receive(data)


class Writing:
    """Writes what is put on a stream, a message per tick, until it is stopped.

    A write that is cut off half-way would keep gRPC from sending the stream's status: the component
    would wait for an end that never comes.
    """

    def __init__(
        self, outbox: Outbox, context: Context, *, join: Callable[[list[bytes]], bytes]
    ) -> None:
        self._outbox = outbox
        self._context = context
        self._join = join
        self._is_busy = False
        self._is_over = False

    async def run(self) -> None:
        """Ends after the write that runs when it is stopped."""
        with contextlib.suppress(_Stopped):
            await pump(self._outbox, join=self._join, write=self._write)

    async def _write(self, data: bytes) -> None:
        self._is_busy = True
        await self._context.write(data)
        self._is_busy = False
        if self._is_over:
            raise _Stopped

    async def stop(self, running: "asyncio.Future[None]") -> None:
        """See the write that runs to its end, if the peer takes it."""
        self._is_over = True
        if self._is_busy:
            await asyncio.wait({running}, timeout=WRITTEN_WITHIN_S)


class _Stopped(Exception):
    pass


async def _both(link: Link, reading: Coroutine[None, None, None], *, writing: Writing) -> None:
    """Read and write until the peer ends its side or the link is over; whatever ended it is kept.

    At the link's end what is still in the outbox (the reason, say) is not waited for.
    """
    tasks = [asyncio.ensure_future(work) for work in (reading, writing.run(), link.over())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            problem = task.exception() if task.done() and not task.cancelled() else None
            if isinstance(problem, AcpFailure):
                link.end(problem.error)
            elif problem is not None and not isinstance(problem, grpc.aio.AbortError):
                log.info("attach_stream_broke", cause=repr(problem))
    finally:
        link.end()
        await writing.stop(tasks[1])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _abort(failure: AcpError, context: Context) -> None:
    """End the stream with the error's status and trailer; always raises."""
    trailer = ((fields.ACP_ERROR_TRAILER, encode_trailer(ErrorBody(error=failure))),)
    await context.abort(
        _STATUS[grpc_status(failure)], failure.message[:STATUS_MESSAGE_MAX], trailer
    )
