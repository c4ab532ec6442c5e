"""A component as a suite reaches it: one class per binding, the same questions, any wrongness.

Routes come from `acp_spec.bindings.routes`, so that no path is copied. What a case overrides
(headers, method, path, body) is sent as it stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from acp_spec.bindings import fields
from acp_spec.bindings.routes import COMPONENT, EXECUTE_STREAM_RPC, Route
from acp_spec.codec.shapes import message_name
from conformance_tests.messages.tree import (
    Inexpressible,
    Text,
    Tree,
    from_proto,
    read_json,
    to_proto,
    write_value,
)
from conformance_tests.raw.grpc_bytes import GrpcAnswer, GrpcBytes
from conformance_tests.raw.http1 import HttpAnswer, Target, Unreachable, request_bytes, send
from conformance_tests.runner.answers import Answer
from conformance_tests.runner.wire import send_wire

GRACE_S = 10.0
"""On top of a call's own time before a peer counts as hung."""
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. `headers` with None are left out; `body` replaces the message's bytes."""

    do: str
    tree: Tree = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    call_id: str = ""
    body: bytes | None = None
    method: str = ""
    path: str = ""
    stream: bool = False
    timeout_s: float = GRACE_S
    how: Tree = field(default_factory=dict)
    """What a case states for attach alone."""


class Peer(Protocol):
    """One binding of one target."""

    binding: str
    url: str

    async def ask(self, ask: Ask) -> Answer:
        """Send and collect. Raises Unreachable, Inexpressible."""

    async def close(self) -> None:
        """Give the connections back."""


def peer_at(url: str, *, token: str) -> Peer:
    """The peer for a URL, by its scheme. Raises ValueError."""
    scheme = url.partition("://")[0]
    if scheme in {"http", "https"}:
        return HttpPeer(url, token=token)
    if scheme in {"grpc", "grpcs"}:
        return GrpcPeer(url, token=token)
    raise ValueError(f"{url!r}: a target looks like http(s)://host:port or grpc(s)://host:port")


class HttpPeer:
    binding = "http"

    def __init__(self, url: str, *, token: str = "") -> None:
        self.url = url
        self._target = Target.of(url)
        self._token = token

    async def close(self) -> None:
        """Nothing is kept open."""

    async def ask(self, ask: Ask) -> Answer:
        route = COMPONENT.get(ask.do)
        body = ask.body
        if body is None and route is not None and route.request is not None:
            body = write_value(ask.tree)
        headers = self._headers(ask, has_body=body is not None)
        path = ask.path or (route.path.replace("{call_id}", ask.call_id) if route else "/")
        data = request_bytes(
            ask.method or (route.method if route else "GET"),
            self._target.base + path,
            headers=headers,
            body=body,
        )
        found = await send(self._target, data, timeout_s=ask.timeout_s)
        return _http_answer(found, ask, route=route)

    def _headers(self, ask: Ask, *, has_body: bool) -> dict[str, str]:
        headers: dict[str, str | None] = {
            "host": self._target.authority,
            "accept": f"{fields.NDJSON}, {fields.JSON}" if ask.stream else fields.JSON,
            **self._stated(ask),
            fields.CONTENT_TYPE: fields.JSON if has_body else None,
            **ask.headers,
        }
        return {name: value for name, value in headers.items() if value is not None}

    def _stated(self, ask: Ask) -> dict[str, str | None]:
        context = ask.tree.get("context")
        about = context if isinstance(context, dict) else {}
        stated: dict[str, str | None] = {fields.ACP_VERSION: fields.VERSION}
        if isinstance(call_id := about.get("call_id"), str) and call_id.isprintable():
            stated[fields.IDEMPOTENCY_KEY] = call_id or None
        if isinstance(timeout_ms := about.get("timeout_ms"), int) and timeout_ms > 0:
            stated[fields.ACP_TIMEOUT_MS] = str(timeout_ms)
        if isinstance(traceparent := about.get("traceparent"), str):
            stated[fields.TRACEPARENT] = traceparent or None
        if self._token:
            stated[fields.AUTHORIZATION] = f"Bearer {self._token}"
        return stated


def _http_answer(found: HttpAnswer, ask: Ask, *, route: Route | None) -> Answer:
    ok = 200 <= found.status < 300
    message = message_name(route.response) if route and route.response else ""
    streamed = found.headers.get("content-type", "").startswith(fields.NDJSON)
    text = found.body
    items: tuple[Tree | None, ...] = ()
    if streamed:
        lines = [line for line in found.body.split(b"\n") if line.strip()]
        items = tuple(read_json(line, "Progress") for line in lines)
        text = lines[-1] if lines else b""
        ok = ok and b'"error"' not in text[:20]
    tree = read_json(text, message if ok and message else "ErrorBody")
    return Answer(
        binding="http",
        do=ask.do,
        message=message,
        ok=ok,
        tree=tree,
        status=found.status,
        headers=found.headers,
        body=found.body,
        items=items,
        elapsed_ms=found.elapsed_ms,
    )


class GrpcPeer:
    binding = "grpc"

    def __init__(self, url: str, *, token: str = "") -> None:
        self.url = url
        self._channel = GrpcBytes(url)
        self._token = token

    async def close(self) -> None:
        await self._channel.close()

    async def ask(self, ask: Ask) -> Answer:
        if ask.do == "wire":
            return await send_wire(self.url, ask.how, token=self._token)
        route = COMPONENT.get(ask.do)
        data = ask.body
        if data is None and route is not None:
            tree = {"call_id": ask.call_id, **ask.tree} if ask.call_id else ask.tree
            data = to_proto(tree, message_name(route.rpc_in))
        path = ask.path or (route.rpc if route else "")
        if ask.stream:
            path = EXECUTE_STREAM_RPC
        if not path:
            raise Inexpressible(f"{ask.do} has no gRPC method")
        method = self._channel.stream if ask.stream else self._channel.unary
        found = await method(
            path, data or b"", metadata=self._metadata(ask), timeout_s=ask.timeout_s
        )
        if found.status == "UNAVAILABLE" and found.error_trailer is None:
            raise Unreachable(f"gRPC UNAVAILABLE: {found.message}")
        return _grpc_answer(found, ask, route=route)

    def _metadata(self, ask: Ask) -> dict[str, str]:
        context = ask.tree.get("context")
        traceparent = context.get("traceparent") if isinstance(context, dict) else None
        stated: dict[str, str | None] = {
            fields.ACP_VERSION: fields.VERSION,
            fields.TRACEPARENT: traceparent if isinstance(traceparent, str) else None,
            fields.AUTHORIZATION: f"Bearer {self._token}" if self._token else None,
            **{name: value for name, value in ask.headers.items() if name != "accept"},
        }
        return {name: value for name, value in stated.items() if value}


def _grpc_answer(found: GrpcAnswer, ask: Ask, *, route: Route | None) -> Answer:
    ok = found.status == "OK"
    message = message_name(route.rpc_out) if route else ""
    items: tuple[Tree | None, ...] = ()
    body = found.items[0] if found.items else b""
    tree: Tree | None = None
    if ask.stream:
        items = tuple(from_proto(item, "ExecuteStreamItem") for item in found.items)
        last = items[-1] if items else None
        response = (last or {}).get("response")
        tree = response if isinstance(response, dict) else None
    elif ok and message:
        tree = from_proto(body, message)
    if not ok:
        tree = None if found.error_trailer is None else from_proto(found.error_trailer, "ErrorBody")
    return Answer(
        binding="grpc",
        do=ask.do,
        message=message,
        ok=ok,
        tree=tree,
        grpc=found.status,
        grpc_message=found.message,
        headers=found.trailers,
        trailer=found.error_trailer,
        body=body,
        items=items,
        elapsed_ms=found.elapsed_ms,
    )


def body_of(value: object) -> bytes | None:
    """What a case states as body: text, or bytes by `!hex`."""
    match value:
        case None:
            return None
        case Text(data=data):
            return data
        case _:
            return str(value).encode()
