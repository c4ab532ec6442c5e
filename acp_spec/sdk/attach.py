"""A component that dials the gateway and opens no port (SPEC section 10).

    component.attach("grpc://gateway:8081", token="...")

One `Attachment` keeps a pair of streams open, dials again with back-off when they drop, and carries
the calls over from stream to stream. It ends when it is drained, or when the gateway refuses it for
a reason that time will not mend.
"""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import ACP_ERROR_TRAILER, VERSION
from acp_spec.codec import frames
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model.attach import (
    AttachHeartbeat,
    AttemptKey,
    CancelOutcome,
    Drain,
    Hello,
    OperationOutcome,
    Welcome,
)
from acp_spec.model.calls import CancelRequest
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.sdk.arrival import Arrival
from acp_spec.sdk.attach_calls import AttachedCalls
from acp_spec.sdk.attach_outbox import Outbox, pump
from acp_spec.sdk.carriage import beside
from acp_spec.sdk.component import Component
from acp_spec.sdk.dispatch import Dispatcher

CONTROL_RPC: Final = "/acp.v1.Attach/Control"
CALLS_RPC: Final = "/acp.v1.Attach/Calls"
WELCOME_S: Final = 30.0
"""A gateway that has just started recovers its sessions first."""
BEATS_MISSED_MAX: Final = 3
BACK_OFF_S: Final = 0.1
BACK_OFF_S_MAX: Final = 5.0
"""Full jitter below a doubling bound: half of the usual reattach grace at most."""
STOP_GRACE_S: Final = 1.0
_OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", 4 * frames.MESSAGE_BYTES_MAX),
)

_LASTING: Final = frozenset(
    {
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialling:
    """Where to, as whom. `instance_id`: give it where a restart is the same instance."""

    target: str
    token: str | None = None
    instance_id: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    credentials: grpc.ChannelCredentials | None = None
    chance: Callable[[], float] = random.random

    def channel(self) -> grpc.aio.Channel:
        scheme, _, place = self.target.rpartition("://")
        if scheme == "grpcs" or self.credentials is not None:
            secured = self.credentials or grpc.ssl_channel_credentials()
            return grpc.aio.secure_channel(place, secured, options=_OPTIONS)
        return grpc.aio.insecure_channel(place, options=_OPTIONS)


class Refused(Exception):
    """The gateway will not have this instance; dialling again would not help."""

    def __init__(self, said: AcpError) -> None:
        super().__init__(f"{said.reason}: {said.message}")
        self.error = said


class Attachment:
    """`run()` until `drain()`. Make it inside a running event loop."""

    def __init__(self, component: Component, dialling: Dialling) -> None:
        self.dispatcher = Dispatcher(component)
        self.calls = AttachedCalls(self.dispatcher)
        self.component_id = ""
        self._component = component
        self._dialling = dialling
        self._incarnation = int(self.dispatcher.clock.wall_ms())
        self._welcomed = asyncio.Event()
        self._leaving = asyncio.Event()
        self._may_leave = asyncio.Event()
        self._control: Outbox | None = None
        self._drain: Drain | None = None
        self._questions: set[asyncio.Task[None]] = set()

    async def attached(self) -> None:
        """Wait for a welcome."""
        await self._welcomed.wait()

    async def run(self) -> None:
        """Stay attached until drained. Raises Refused."""
        await self.calls.load()
        leaving = asyncio.ensure_future(self._leaving.wait())
        staying = asyncio.ensure_future(self._stay())
        try:
            await asyncio.wait({leaving, staying}, return_when=asyncio.FIRST_COMPLETED)
            if staying.done():
                await staying
        finally:
            for task in (leaving, staying):
                task.cancel()
            await asyncio.gather(leaving, staying, return_exceptions=True)

    async def drain(self, drain_s: float) -> bool:
        """Ask for no more calls, finish those that run, see their answers off, leave.

        False when something was still running, or not acknowledged, in the end.
        """
        self._drain = Drain(grace_ms=int(drain_s * 1000))
        if self._control is not None:
            self._may_leave.clear()
            self._control.put(frames.component_control_frame(self._drain))
            # Until the gateway has heard it calls may still come, and are taken.
            await _within(self._may_leave.wait(), STOP_GRACE_S)
        clean = await _within(self.dispatcher.drain(), drain_s)
        if not clean:
            self.dispatcher.stop_all()
            await _within(self.dispatcher.drain(), STOP_GRACE_S)
        clean &= await _within(self.calls.all_acknowledged(), STOP_GRACE_S)
        self._leaving.set()
        return clean

    def close(self) -> None:
        self._leaving.set()
        self.dispatcher.close()

    # ---- dialling --------------------------------------------------------------------------------

    async def _stay(self) -> None:
        bound_s = BACK_OFF_S
        while True:
            said = await self._dial()
            if self._welcomed.is_set():
                self._welcomed.clear()
                bound_s = BACK_OFF_S
            if said is not None and not said.retryable:
                raise Refused(said)
            wait_s = bound_s * self._dialling.chance()
            log.info("not attached (%s), dialling again in %.1f s", said and said.message, wait_s)
            await asyncio.sleep(wait_s)
            bound_s = min(BACK_OFF_S_MAX, 2 * bound_s)

    async def _dial(self) -> AcpError | None:
        """One pair of streams, from hello to its end; what the gateway said at the end, if it did.

        All of the pair has ended on return, so that the next hello tells what is really so.
        """
        channel = self._dialling.channel()
        metadata = tuple(beside(None, self._dialling.token).items())
        try:
            control = channel.stream_stream(CONTROL_RPC)(metadata=metadata)
            welcome = await self._hello(control)
            calls = channel.stream_stream(CALLS_RPC)(metadata=metadata)
            await self._converse(control, calls, welcome=welcome)
            return None
        except grpc.aio.AioRpcError as failed:
            return _said(failed)
        except asyncio.InvalidStateError:  # so grpc.aio calls a write to a stream that has ended
            return error(Reason.UNAVAILABLE, "the gateway ended the stream")
        except AcpFailure as failure:  # what came made no sense: that may pass, unlike a refusal
            return error(Reason.UNAVAILABLE, failure.error.message)
        finally:
            self._control = None
            self.calls.disconnected()
            await channel.close()

    async def _hello(self, control: Any) -> Welcome:
        hello = Hello(
            instance_id=self._dialling.instance_id,
            incarnation=self._incarnation,
            card=self._component.card(),
            in_flight=self.calls.in_flight,
            finished_unacked=self.calls.finished_unacked,
            acp_version=VERSION,
        )
        await control.write(frames.control([frames.component_control_frame(hello)]))
        try:
            async with asyncio.timeout(WELCOME_S):
                data = await control.read()
        except TimeoutError:
            raise _broken(f"no welcome within {WELCOME_S:g} s") from None
        said = [] if data is grpc.aio.EOF else frames.read_gateway_control(data)
        if not said or not isinstance(said[0], Welcome):
            raise _broken("the gateway ended the stream without a welcome")
        return said[0]

    async def _converse(self, control: Any, calls: Any, *, welcome: Welcome) -> None:
        """Everything on both streams, until one of them ends."""
        said, called = Outbox(of_gateway=False), Outbox(of_gateway=False)
        self._control = said
        await calls.write(frames.component_calls([], attachment_id=welcome.attachment_id))
        if self._drain is not None:
            said.put(frames.component_control_frame(self._drain))
        self.calls.connected(called)
        self.component_id = welcome.component_id
        self._welcomed.set()
        work = (
            self._hear(control, said, beat_s=welcome.heartbeat_ms / 1000),
            self._beat(said, beat_s=welcome.heartbeat_ms / 1000),
            self._read_calls(calls),
            pump(said, join=frames.control, write=control.write),
            pump(called, join=frames.component_calls, write=calls.write),
        )
        tasks = [asyncio.ensure_future(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.cancelled():  # by the stream, which a broken read cancels
                    raise _broken("the stream was cut")
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_calls(self, calls: Any) -> None:
        while (data := await calls.read()) is not grpc.aio.EOF:
            self.calls.receive(data)

    async def _hear(self, control: Any, said: Outbox, *, beat_s: float) -> None:
        while True:
            try:
                async with asyncio.timeout(beat_s * BEATS_MISSED_MAX):
                    data = await control.read()
            except TimeoutError:
                raise _broken("the gateway has fallen silent") from None
            if data is grpc.aio.EOF:
                return
            for frame in frames.read_gateway_control(data):
                self._heard(frame, said)

    def _heard(self, frame: frames.ControlFromGateway, said: Outbox) -> None:
        match frame:
            case CancelRequest():
                self._answer_later(said, self._cancel, question=frame)
            case frames.Named():
                self._answer_later(said, self._operation, question=frame)
            case Drain():
                self._may_leave.set()
            case _:
                pass

    async def _beat(self, said: Outbox, *, beat_s: float) -> None:
        while True:
            health = self.dispatcher.health(self._arrival())
            beat = AttachHeartbeat(signals=health.signals)
            said.put(frames.component_control_frame(beat))
            await asyncio.sleep(beat_s)

    # ---- questions of the gateway ----------------------------------------------------------------

    def _answer_later(
        self, said: Outbox, answer: Callable[[Any], Any], *, question: object
    ) -> None:
        async def work() -> None:
            said.put(frames.component_control_frame(await answer(question)))

        task = asyncio.ensure_future(work())
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    async def _cancel(self, request: CancelRequest) -> CancelOutcome:
        response = await self.dispatcher.cancel(request, self._arrival())
        key = AttemptKey(call_id=request.call_id, attempt=request.attempt)
        return CancelOutcome(key=key, response=response)

    async def _operation(self, named: frames.Named) -> OperationOutcome:
        call_id, arrival = named.call_id, self._arrival()
        try:
            if named.stop:
                cancelled = await self.dispatcher.cancel_operation(call_id, arrival)
                return OperationOutcome(call_id=call_id, cancelled=cancelled)
            state = await self.dispatcher.get_operation(call_id, arrival)
            return OperationOutcome(call_id=call_id, state=state)
        except AcpFailure as failure:
            return OperationOutcome(call_id=call_id, error=failure.error)

    def _arrival(self) -> Arrival:
        return Arrival(at_ms=self.dispatcher.clock.monotonic_ms())


def _broken(why: str) -> AcpFailure:
    return AcpFailure(error(Reason.UNAVAILABLE, why))


def _said(failed: grpc.aio.AioRpcError) -> AcpError:
    return _error_of(failed.code(), failed.details(), trailing=failed.trailing_metadata())


def _error_of(code: grpc.StatusCode, details: str | None, *, trailing: Any) -> AcpError:
    """What the gateway stated; else the end of a stream is only that, unless its code says more."""
    trailer = next((value for name, value in trailing or () if name == ACP_ERROR_TRAILER), None)
    if trailer is None and code not in _LASTING:
        return error(Reason.UNAVAILABLE, details or f"the stream ended with {code.name}")
    return decode_trailer(code.value[0], details or code.name, trailer=trailer).error


async def _within(work: Any, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        return False
    return True
