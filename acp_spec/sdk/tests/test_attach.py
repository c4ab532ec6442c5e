"""A component that attached, against a gateway that says nothing, nonsense, or no."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from acp_spec.bindings.errors import error, grpc_status
from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from acp_spec.codec import frames
from acp_spec.codec.error_trailer import encode_trailer
from acp_spec.model.attach import AttachHeartbeat, Hello, Welcome
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import Reason
from acp_spec.sdk.attach import CALLS_RPC, CONTROL_RPC, Attachment, Dialling, Refused
from acp_spec.sdk.component import Component

UNTIL_S = 10.0
Behave = Callable[["Gateway", Any], Awaitable[None]]
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


class Gateway(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """Welcomes, then does on the control stream what a test says."""

    def __init__(self, control: Behave, *, heartbeat_ms: int = 60_000) -> None:
        self.hellos: list[Hello] = []
        self.beats = 0
        self._control = control
        self._heartbeat_ms = heartbeat_ms

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        handlers = {CONTROL_RPC: self._on_control, CALLS_RPC: self._on_calls}
        return grpc.stream_stream_rpc_method_handler(handlers[details.method])

    async def _on_control(self, _requests: object, context: Any) -> None:
        (hello,) = frames.read_component_control(await context.read())
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        await self._control(self, context)

    async def _on_calls(self, _requests: object, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            pass

    async def welcome(self, context: Any) -> None:
        welcome = Welcome(heartbeat_ms=self._heartbeat_ms, attachment_id="a")
        await context.write(frames.control([frames.gateway_control_frame(welcome)]))

    async def hear(self, context: Any) -> None:
        """Read what comes, and say nothing."""
        while (data := await context.read()) is not grpc.aio.EOF:
            said = frames.read_component_control(data)
            self.beats += sum(isinstance(one, AttachHeartbeat) for one in said)


@contextlib.asynccontextmanager
async def dialled(gateway: Gateway) -> AsyncIterator[tuple[Attachment, asyncio.Task[None]]]:
    """A component that dials this gateway."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((gateway,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    dialling = Dialling(target=f"127.0.0.1:{port}", instance_id="i", chance=lambda: 0.01)
    attachment = Attachment(Component("c", "1.0.0"), dialling)
    running = asyncio.create_task(attachment.run())
    try:
        yield attachment, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        attachment.close()
        await server.stop(0)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(UNTIL_S):
            await story()

    asyncio.run(bounded())


async def hellos(gateway: Gateway, count: int) -> None:
    while len(gateway.hellos) < count:  # noqa: ASYNC110  # the gateway has no event for it
        await asyncio.sleep(0.002)


async def beats(gateway: Gateway, count: int) -> None:
    """Of all its streams together: a pause of the machine can eat those of one."""
    while gateway.beats < count:  # noqa: ASYNC110  # the gateway has no event for it
        await asyncio.sleep(0.002)


async def say_nothing(gateway: Gateway, context: Any) -> None:
    await gateway.welcome(context)
    await gateway.hear(context)


def test_a_gateway_that_falls_silent_is_left_and_dialled_again() -> None:
    async def story() -> None:
        gateway = Gateway(say_nothing, heartbeat_ms=30)
        async with dialled(gateway):
            await hellos(gateway, 2)
            await beats(gateway, 2)
            first, second = gateway.hellos[:2]
            assert first.incarnation == second.incarnation, "it is the same process"

    run(story)


async def garbage(gateway: Gateway, context: Any) -> None:
    await gateway.welcome(context)
    await context.write(b"\xff\xff\xff")
    await gateway.hear(context)


async def no_welcome(gateway: Gateway, context: Any) -> None:
    await context.write(frames.control([frames.gateway_control_frame(AttachHeartbeat())]))


async def end_at_once(gateway: Gateway, context: Any) -> None:
    return


async def end_after_welcome(gateway: Gateway, context: Any) -> None:
    await gateway.welcome(context)


async def not_now(gateway: Gateway, context: Any) -> None:
    await _refuse(context, Reason.UNAVAILABLE)


async def cancel(gateway: Gateway, context: Any) -> None:
    await context.abort(grpc.StatusCode.CANCELLED, "the server goes")


async def _refuse(context: Any, reason: Reason) -> None:
    body = ErrorBody(error=error(reason, "so it is"))
    trailer = ((ACP_ERROR_TRAILER, encode_trailer(body)),)
    await context.abort(_STATUS[grpc_status(body.error)], "so it is", trailer)


@pytest.mark.parametrize(
    "behave", [garbage, no_welcome, end_at_once, end_after_welcome, not_now, cancel]
)
def test_whatever_ends_a_stream_it_dials_again(behave: Behave) -> None:
    async def story() -> None:
        gateway = Gateway(behave)
        async with dialled(gateway) as (_, running):
            await hellos(gateway, 3)
            assert not running.done()

    run(story)


@pytest.mark.parametrize(
    "reason",
    [
        Reason.PERMISSION_DENIED,
        Reason.CONTRACT_VIOLATION,
        Reason.ALREADY_EXISTS,
        Reason.IDEMPOTENCY_CONFLICT,
        Reason.VERSION_UNSUPPORTED,
    ],
)
def test_a_refusal_that_time_does_not_mend_ends_it(reason: Reason) -> None:
    async def refuse(gateway: Gateway, context: Any) -> None:
        await _refuse(context, reason)

    async def story() -> None:
        gateway = Gateway(refuse)
        async with dialled(gateway) as (_, running):
            with pytest.raises(Refused, match=reason.value):
                await running
            assert len(gateway.hellos) == 1

    run(story)


def test_a_gateway_without_attach_is_a_refusal() -> None:
    async def story() -> None:
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        attachment = Attachment(Component("c", "1.0.0"), Dialling(target=f"127.0.0.1:{port}"))
        with pytest.raises(Refused, match="UNIMPLEMENTED"):
            await attachment.run()
        attachment.close()
        await server.stop(0)

    run(story)


def test_a_component_leaves_also_while_nobody_is_there() -> None:
    async def story() -> None:
        dialling = Dialling(target="127.0.0.1:1", chance=lambda: 0.01)
        attachment = Attachment(Component("c", "1.0.0"), dialling)
        running = asyncio.create_task(attachment.run())
        assert await attachment.drain(UNTIL_S)
        await running
        attachment.close()

    run(story)
