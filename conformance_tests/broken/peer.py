"""Starts the correct component behind the layers of one broken peer, on free ports of loopback."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from acp_spec.model.card import Card
from acp_spec.sdk.attach import Attachment, Refused
from acp_spec.sdk.component import Component
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.grpc_server import GrpcFront, server_options
from acp_spec.sdk.http_server import HttpFront
from conformance_tests.broken.attach_layer import AttachRule, LayeredDialling
from conformance_tests.broken.base import make
from conformance_tests.broken.grpc_layer import GrpcLayer, GrpcRule
from conformance_tests.broken.http_layer import App, HttpLayer, Rule
from conformance_tests.broken.tcp_layer import TcpRule, before_port
from conformance_tests.stage.http_stage import serve_app


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPeer:
    """One rule broken. `because` is a pattern over `<check>: <message>` of the failed check.

    `fails_with` are requirements that cannot but fail with it; `why_with` says why.
    """

    requirement: str
    because: str
    does: str
    http: Callable[[], Rule] | None = None
    grpc: Callable[[], GrpcRule] | None = None
    tcp: Callable[[], TcpRule] | None = None
    attach: Callable[[], AttachRule] | None = None
    card: Callable[[Card], Card] | None = None
    component: Callable[[], Component] = make
    without_health: bool = False
    fails_with: tuple[str, ...] = ()
    why_with: str = ""


TOKEN = "token-of-the-correct-peer"
"""The peer asks for it as if it were bound to more than loopback."""


@contextlib.asynccontextmanager
async def serving(peer: BrokenPeer | None) -> AsyncIterator[tuple[str, ...]]:
    """The URLs of the peer (None = the correct one) while it serves."""
    component = peer.component() if peer else make()
    if peer is not None and peer.card is not None:
        component = Recarded(component, peer.card)
    dispatcher = Dispatcher(component, token=TOKEN)
    app: App = HttpFront(dispatcher)
    if peer is not None and peer.http is not None:
        app = HttpLayer(app, peer.http())
    tcp = None if peer is None or peer.tcp is None else peer.tcp()
    async with (
        serve_app(app) as http,
        _serve_grpc(dispatcher, peer) as rpc,
        before_port(rpc, tcp) as before,
    ):
        yield http, before
    dispatcher.stop_all()
    dispatcher.close()


ATTACHED_REQUEST_BYTES = 512 * 1024
"""More than one frame of attach."""


@contextlib.asynccontextmanager
async def attaching(peer: BrokenPeer | None, url: str) -> AsyncIterator[None]:
    """The peer (None = the correct one) attaches to `url` and stays attached."""
    rule = peer.attach() if peer is not None and peer.attach is not None else AttachRule()
    dialling = LayeredDialling(target=url, instance_id="conformance-peer", rule=rule)
    staying = asyncio.create_task(_stay(dialling))
    try:
        yield
    finally:
        staying.cancel()
        await asyncio.gather(staying, return_exceptions=True)


async def _stay(dialling: LayeredDialling) -> None:
    component = make(max_request_bytes=ATTACHED_REQUEST_BYTES)
    while True:
        attachment = Attachment(component, dialling)
        try:
            await attachment.run()
        except Refused:
            if not dialling.rule.stays:
                return
        finally:
            attachment.close()


class Recarded(Component):
    """A component that describes itself as another would."""

    def __init__(self, component: Component, change: Callable[[Card], Card]) -> None:
        vars(self).update(vars(component))
        self._change = change

    def card(self) -> Card:
        return self._change(super().card())


@contextlib.asynccontextmanager
async def _serve_grpc(dispatcher: Dispatcher, peer: BrokenPeer | None) -> AsyncIterator[str]:
    layers = [GrpcLayer(peer.grpc())] if peer is not None and peer.grpc is not None else []
    limit = dispatcher.component.limits.max_request_bytes
    server = grpc.aio.server(interceptors=layers, options=server_options(limit))
    server.add_generic_rpc_handlers((GrpcFront(dispatcher),))
    if peer is None or not peer.without_health:
        service = health.aio.HealthServicer()  # pyright: ignore[reportAttributeAccessIssue]
        health_pb2_grpc.add_HealthServicer_to_server(service, server)
        await service.set("", health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection((reflection.SERVICE_NAME,), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        await server.stop(0)
