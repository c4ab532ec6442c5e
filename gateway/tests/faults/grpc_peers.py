"""Components over gRPC that are well until they are called, and raw HTTP/2 in their place."""

import asyncio
import contextlib
import struct
from dataclasses import dataclass, field
from typing import Any

import msgspec

from acp_spec.codec import proto
from acp_spec.model.calls import CancelResponse, ExecuteRequest
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import CancelState, HealthStatus
from gateway.tests.e2e.stranger import card
from gateway.tests.faults.http_peers import LONG_MS, actions
from gateway.tests.hostile.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    frame,
    literal,
)
from gateway.transports.tests.raw_grpc_peer import Handler
from gateway.transports.tests.raw_peer import Behaviour, Peer

GOAWAY = 7
_HEAD = struct.Struct(">I")
FRAME_HEAD_BYTES = 9
INTERNAL_ERROR = 2


@dataclass
class WrongGrpc:
    """`execute` answers every call; `called` counts them by action."""

    name: str
    execute: Handler
    timeout_ms: int = LONG_MS
    called: list[str] = field(default_factory=list)

    def handlers(self) -> dict[str, Handler]:
        told = card(self.name, "EXECUTOR", actions=actions(self.timeout_ms))
        of_name = msgspec.convert(told, Card, strict=False)

        async def describe(data: bytes, call: Any) -> bytes:
            return proto.to_proto(of_name)

        async def health(data: bytes, call: Any) -> bytes:
            return proto.to_proto(Health(status=HealthStatus.SERVING))

        async def cancel(data: bytes, call: Any) -> bytes:
            return proto.to_proto(CancelResponse(state=CancelState.UNKNOWN_CALL))

        async def counted(data: bytes, call: Any) -> bytes:
            self.called.append(proto.decode_request(ExecuteRequest, data).action)
            return await self.execute(data, call)

        return {
            "/acp.v1.Component/Describe": describe,
            "/acp.v1.Component/Health": health,
            "/acp.v1.Component/Cancel": cancel,
            "/acp.v1.Executor/Execute": counted,
        }


async def hang(data: bytes, call: Any) -> bytes:
    await asyncio.sleep(60)
    return b""


async def crash(data: bytes, call: Any) -> bytes:
    raise RuntimeError("as told")


def answering(message: bytes) -> Handler:
    async def answer(data: bytes, call: Any) -> bytes:
        return message

    return answer


# ---- HTTP/2 by hand: what no gRPC library would say ----------------------------------------------


def http2(*frames: bytes) -> Behaviour:
    """Greets as HTTP/2 does; each request's head gets these frames (stream ids filled in)."""

    async def behave(peer: Peer) -> None:
        await peer.reader.readexactly(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        await peer.say(frame(SETTINGS))
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                kind, flags, stream = await _next_frame(peer)
                if kind == SETTINGS and not flags & ACK:
                    await peer.say(frame(SETTINGS, flags=ACK))
                if kind == HEADERS:
                    for one in frames:
                        await peer.say(_on_stream(one, stream))
                    if not frames:
                        return

    return behave


async def _next_frame(peer: Peer) -> tuple[int, int, int]:
    head = await peer.reader.readexactly(FRAME_HEAD_BYTES)
    (length,) = _HEAD.unpack(b"\0" + head[:3])
    (stream,) = _HEAD.unpack(head[5:9])
    await peer.reader.readexactly(length)
    return head[3], head[4], stream


def _on_stream(one: bytes, stream: int) -> bytes:
    """The frame with the stream's number; one of the connection (GOAWAY) keeps 0."""
    return one if one[3] == GOAWAY else one[:5] + _HEAD.pack(stream) + one[9:]


RESET_STREAM = frame(RST_STREAM, _HEAD.pack(INTERNAL_ERROR), stream=1)
GO_AWAY = frame(GOAWAY, _HEAD.pack(0) + _HEAD.pack(INTERNAL_ERROR))
ANSWER_HEAD = frame(
    HEADERS,
    literal(b":status", b"200") + literal(b"content-type", b"application/grpc"),
    flags=END_HEADERS,
    stream=1,
)
HALF_A_MESSAGE = frame(DATA, struct.pack(">BI", 0, 100) + b"half", stream=1)
HTML_HEAD = frame(
    HEADERS,
    literal(b":status", b"502") + literal(b"content-type", b"text/html"),
    flags=END_HEADERS,
    stream=1,
)
HTML_BODY = frame(DATA, b"<html>502 Bad Gateway</html>", flags=1, stream=1)
