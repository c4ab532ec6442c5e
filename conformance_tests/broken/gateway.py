"""A broken gateway: a real one, behind layers on both of its sides that break one rule.

`client` changes what callers say and hear, `stage` what components are sent and answer, `ear` what
a component takes down of a request, `rpc` what gRPC callers hear. The proxy passes everything else
on as it stands.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from conformance_tests.broken.grpc_layer import GrpcLayer, GrpcRule
from conformance_tests.broken.http_layer import App, HttpLayer, Receive, Rule, Scope, Send
from conformance_tests.broken.tcp_layer import TcpRule
from conformance_tests.raw.grpc_bytes import GrpcBytes
from conformance_tests.raw.http1 import Target, request_bytes, send
from conformance_tests.stage.actors import Ear
from conformance_tests.stage.attach_link import Between
from conformance_tests.stage.http_stage import serve_app

FORWARD_S = 40.0
_STATUS = {code.name: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenGateway:
    """One rule broken; fields as in BrokenPeer."""

    requirement: str
    because: str
    does: str
    client: Callable[[], Rule] | None = None
    stage: Callable[[], Rule] | None = None
    rpc: Callable[[], GrpcRule] | None = None
    ear: Callable[[], Ear] | None = None
    tcp: Callable[[], TcpRule] | None = None
    """On the bytes of its gRPC port."""
    between: Callable[[], Between] | None = None
    """On the streams of components that attach."""
    without_health: bool = False
    fails_with: tuple[str, ...] = ()
    why_with: str = ""


class ForwardApp:
    """An ASGI application that passes everything on to one HTTP address."""

    def __init__(self, url: str) -> None:
        self._target = Target.of(url)

    async def __call__(self, scope: Scope, receive: Receive, send_back: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        path = scope["raw_path"].decode("latin-1")
        if scope.get("query_string"):
            path += "?" + scope["query_string"].decode("latin-1")
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        headers["connection"] = "close"
        data = request_bytes(scope["method"], path, headers=headers, body=body or None)
        found = await send(self._target, data, timeout_s=FORWARD_S)
        kept = {k: v for k, v in found.headers.items() if k not in _HOP}
        encoded = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in kept.items()]
        start = {"type": "http.response.start", "status": found.status, "headers": encoded}
        await send_back(start)
        await send_back({"type": "http.response.body", "body": found.body})


_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


class ForwardRpc(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """Every unary method, passed on to one gRPC address."""

    def __init__(self, url: str, *, without_health: bool) -> None:
        self._url = url
        self._without_health = without_health

    def service(self, handler_call_details: Any) -> Any:
        path: str = handler_call_details.method
        if self._without_health and "Health" in path:
            return None

        async def serve(data: bytes, context: Any) -> bytes:
            channel = GrpcBytes(self._url)
            metadata = {k: v for k, v in context.invocation_metadata() or () if _passes(k, v)}
            try:
                found = await channel.unary(path, data, metadata=metadata, timeout_s=FORWARD_S)
            finally:
                await channel.close()
            if found.status != "OK":
                trailer = found.error_trailer
                trailing = () if trailer is None else ((ACP_ERROR_TRAILER, trailer),)
                await context.abort(_STATUS[found.status], found.message, trailing)
            return found.items[0]

        return grpc.unary_unary_rpc_method_handler(serve)


def _passes(name: str, value: object) -> bool:
    return isinstance(value, str) and not name.startswith(("grpc-", "user-agent"))


@contextlib.asynccontextmanager
async def before(
    gateway: BrokenGateway | None, http: str, *, grpc_url: str
) -> AsyncIterator[tuple[str, str]]:
    """The addresses at which the (broken) gateway is reached."""
    app: App = ForwardApp(http)
    if gateway is not None and gateway.client is not None:
        app = HttpLayer(app, gateway.client())
    async with serve_app(app) as url, _serve_rpc(gateway, grpc_url) as rpc:
        yield url, rpc


@contextlib.asynccontextmanager
async def _serve_rpc(gateway: BrokenGateway | None, url: str) -> AsyncIterator[str]:
    layers = [GrpcLayer(gateway.rpc())] if gateway is not None and gateway.rpc is not None else []
    server = grpc.aio.server(interceptors=layers, options=[("grpc.so_reuseport", 0)])
    without_health = gateway is not None and gateway.without_health
    server.add_generic_rpc_handlers((ForwardRpc(url, without_health=without_health),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        await server.stop(0)
