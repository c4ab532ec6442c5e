"""A gateway as a suite reaches it: the routes of its API over HTTP, any bytes over gRPC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote, urlencode

import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.route import Body
from acp_spec.bindings.routes import GATEWAY, Route
from acp_spec.codec.shapes import message_name
from conformance_tests.messages.tree import Text, Tree, Value, from_proto, read_json, write_value
from conformance_tests.raw.grpc_bytes import GrpcBytes
from conformance_tests.raw.http1 import HttpAnswer, Target, Unreachable, request_bytes, send
from conformance_tests.runner.answers import Answer

PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the gateway's API, by route name or as raw method and path."""

    do: str
    tree: Tree = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    token: str = ""
    body: bytes | None = None
    method: str = ""
    path: str = ""


class GatewayPeer:
    """The API of one gateway; `rpc` is its gRPC address, if it was given."""

    def __init__(self, url: str, rpc: str = "") -> None:
        self.url = url
        self._target = Target.of(url)
        self._channel = GrpcBytes(rpc) if rpc else None

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()

    async def call(self, call: Call) -> Answer:
        """Raises Unreachable."""
        route = GATEWAY.get(call.do)
        body = call.body
        if body is None and route is not None and route.request is not None:
            body = write_value(call.tree)
        path = call.path or (_path(route, call.params) if route else "/")
        if call.query:
            path = f"{path}?{urlencode(call.query)}"
        data = request_bytes(
            call.method or (route.method if route else "GET"),
            self._target.base + path,
            headers=self._headers(call, route, has_body=body is not None),
            body=body,
        )
        return _answer(await send(self._target, data, timeout_s=PATIENCE_S), call, route=route)

    def _headers(self, call: Call, route: Route | None, *, has_body: bool) -> dict[str, str]:
        yaml = route is not None and route.request_body is Body.YAML
        stated: dict[str, str | None] = {
            "host": self._target.authority,
            "accept": "*/*",
            fields.ACP_VERSION: fields.VERSION,
            fields.CONTENT_TYPE: ("application/yaml" if yaml else fields.JSON)
            if has_body
            else None,
            fields.AUTHORIZATION: f"Bearer {call.token}" if call.token else None,
            **call.headers,
        }
        return {name: value for name, value in stated.items() if value is not None}

    async def rpc(
        self, path: str, data: bytes, *, message: str, metadata: Mapping[str, str]
    ) -> Answer:
        """One unary gRPC call. Raises Unreachable when no gRPC address was given."""
        if self._channel is None:
            raise Unreachable("no gRPC address of the gateway was given")
        found = await self._channel.unary(path, data, metadata=metadata, timeout_s=PATIENCE_S)
        ok = found.status == "OK"
        body = found.items[0] if found.items else b""
        tree = from_proto(body, message) if ok and message else None
        if not ok and found.error_trailer is not None:
            tree = from_proto(found.error_trailer, "ErrorBody")
        return Answer(
            binding="grpc",
            do="rpc",
            message=message,
            ok=ok,
            tree=tree,
            grpc=found.status,
            grpc_message=found.message,
            trailer=found.error_trailer,
            body=body,
            elapsed_ms=found.elapsed_ms,
        )


def _path(route: Route, params: Mapping[str, str]) -> str:
    path = route.path
    for name, value in params.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _message(route: Route | None, status: int) -> str:
    if route is None:
        return ""
    type_ = dict(route.also).get(status, route.response if status == route.status else None)
    return message_name(type_) if type_ is not None else ""


def _answer(found: HttpAnswer, call: Call, *, route: Route | None) -> Answer:
    ok = 200 <= found.status < 300
    message = _message(route, found.status) if ok else "ErrorBody"
    kind = found.headers.get(fields.CONTENT_TYPE, "")
    if ok and kind.startswith(fields.EVENT_STREAM):
        tree: Tree | None = {"events": _events(found.body)}
        message = ""
    elif ok and call.do == "get_trajectory":
        tree = _trajectory(found.body)
    else:
        tree = read_json(found.body, message if message and message != "Document" else "Empty")
    return Answer(
        binding="http",
        do=call.do,
        message=message if message != "Document" else "",
        ok=ok,
        tree=tree,
        status=found.status,
        headers=found.headers,
        body=found.body,
        elapsed_ms=found.elapsed_ms,
    )


def _trajectory(body: bytes) -> Tree | None:
    """The document; payloads of calls, input and output stay text."""
    tree = read_json(body, "Empty")
    if tree is None:
        return None
    held = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    for name in ("input", "output"):
        if name in held:
            tree[name] = Text(bytes(held[name]))
    rows = msgspec.json.decode(held.get("calls", b"[]"), type=list[dict[str, msgspec.Raw]])
    for row, texts in zip(cast("list[Tree]", tree.get("calls", [])), rows, strict=True):
        for name in ("arguments", "output"):
            if name in texts:
                row[name] = Text(bytes(texts[name]))
    return tree


def _events(body: bytes) -> list[Value]:
    """The frames of a finished stream."""
    events: list[Value] = []
    for frame in body.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        event: Tree = {}
        for line in frame.splitlines():
            name, colon, value = line.partition(":")
            if colon and name:
                event[name] = value.removeprefix(" ")
        if "data" in event:
            event["id"] = int(str(event.get("id", "-1")))
            event["data"] = read_json(str(event["data"]).encode(), "Empty")
            events.append(event)
    return events
