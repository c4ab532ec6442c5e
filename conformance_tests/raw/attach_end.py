"""The gateway's end of attach, by hand: components dial in, everything they say is kept.

It welcomes, answers heartbeats, takes what comes, and otherwise says only what a case orders, also
what is wrong. It judges nothing.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from conformance_tests.messages.tree import Tree, descriptor, from_proto, to_proto, varint
from conformance_tests.raw.bind import check_bind

CONTROL_RPC: Final = "/acp.v1.Attach/Control"
CALLS_RPC: Final = "/acp.v1.Attach/Calls"
HEARTBEAT_MS: Final = 1_000
"""Three missed ones are soon over, and longer than a busy machine pauses."""
GRACE_MS: Final = 10_000
WRITTEN_WITHIN_S: Final = 1.0
FRAME_BYTES_MAX: Final = 256 * 1024
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
UNAVAILABLE: Final[Tree] = {
    "code": "UNAVAILABLE",
    "reason": "UNAVAILABLE",
    "message": "Come again.",
    "retryable": True,
    "side_effect": "NONE",
}
_STATUS = {code.name: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame as it came: `name` is its member, empty for one of the future."""

    at_ms: float
    stream: str
    name: str
    tree: Tree
    size: int


def frames_of(data: bytes, *, message: str, stream: str) -> list[Frame]:
    """The frames of a message (`ComponentControl` ...). Raises ValueError for what is none."""
    try:
        parsed: Any = GetMessageClass(descriptor(message)).FromString(data)
    except DecodeError:
        raise ValueError(f"the bytes are no {message}") from None
    return list(_each(parsed, message, stream=stream))


def _each(parsed: Any, message: str, *, stream: str) -> Iterator[Frame]:
    for frame in parsed.frames:
        raw = bytes(frame.SerializeToString())
        tree = from_proto(raw, f"{message}Frame") or {}
        name = next(iter(tree), "")
        held = tree.get(name)
        yield Frame(
            at_ms=time.monotonic() * 1000,
            stream=stream,
            name=name,
            tree=held if isinstance(held, dict) else {},
            size=len(raw),
        )


@dataclass(slots=True, eq=False)
class Link:
    """One pair of streams of the component, from its hello on."""

    number: int
    hello: Tree
    metadata: dict[str, str]
    first: str
    calls_metadata: dict[str, str] = field(default_factory=dict)
    attachment_id: str = ""
    frames: list[Frame] = field(default_factory=list)
    credits: int = 0
    has_calls: bool = False
    is_answering: bool = True
    """Heartbeats are answered."""
    out: dict[str, "asyncio.Queue[bytes | None]"] = field(
        default_factory=lambda: {"control": asyncio.Queue(), "calls": asyncio.Queue()}
    )
    cut: dict[str, asyncio.Event] = field(
        default_factory=lambda: {"control": asyncio.Event(), "calls": asyncio.Event()}
    )
    ended: set[str] = field(default_factory=set)
    """Streams that are over, from whichever side."""
    left: set[str] = field(default_factory=set)
    """Those that the component ended."""
    why: Tree | None = None

    @property
    def wanted_id(self) -> str:
        return f"attachment-{self.number}"

    def say(self, tree: Tree) -> None:
        """A frame on the control stream."""
        self.out["control"].put_nowait(to_proto({"frames": [tree]}, "GatewayControl"))

    def call(self, *frames: bytes) -> None:
        """Frames of the calls stream, as they are, in one message."""
        self.out["calls"].put_nowait(b"".join(length_delimited(1, frame) for frame in frames))

    def end(self, *streams: str, why: Tree | None = None) -> None:
        """End one or both streams."""
        self.why = why
        for stream in streams or ("control", "calls"):
            self.cut[stream].set()


def length_delimited(number: int, data: bytes) -> bytes:
    """One protobuf field with bytes in it."""
    return varint(number << 3 | 2) + varint(len(data)) + data


Listener: TypeAlias = Callable[[Link, Frame], None]


class AttachEnd:
    """Serves `acp.v1.Attach` on one address; the newest link is `link`."""

    def __init__(self, bind: str = "127.0.0.1:0") -> None:
        self.abandoned = ""
        self._bind = bind
        self._server: grpc.aio.Server | None = None
        self._news = asyncio.Event()
        self.url = ""
        self.links: list[Link] = []
        self.hellos = 0
        self.refusals: list[Tree] = []
        """Errors for the next hellos."""
        self.listener: Listener = lambda link, frame: None

    async def start(self) -> str:
        """The URL at which components dial in. Raises as `check_bind` does."""
        check_bind(self._bind)
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers((_Methods(self._control, self._calls),))
        try:
            port = server.add_insecure_port(self._bind)
        except RuntimeError as problem:
            raise OSError(f"{self._bind} cannot be bound: {problem}") from None
        await server.start()
        self._server = server
        self.url = f"grpc://{self._bind.rpartition(':')[0]}:{port}"
        return self.url

    async def stop(self) -> None:
        for link in self.links:
            link.end()
        if self._server is not None:
            await self._server.stop(0.2)

    @property
    def link(self) -> Link | None:
        """The newest link with both streams, if it stands."""
        found = next((one for one in reversed(self.links) if one.has_calls), None)
        return found if found is not None and not found.ended else None

    def noticed(self) -> None:
        """Something changed: who waits looks again."""
        self._news.set()

    def nobody_comes(self, why: str) -> None:
        """The component will not dial (again): nobody need wait for it."""
        self.abandoned = why
        self.noticed()

    async def until(self, condition: Callable[[], bool], *, within_s: float) -> bool:
        """Whether it became so in time."""
        deadline = time.monotonic() + within_s
        while not condition():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()
        return True

    # ---- the streams -----------------------------------------------------------------------------

    async def _control(self, _requests: Any, context: Any) -> None:
        data = await context.read()
        said = (
            []
            if data is grpc.aio.EOF
            else frames_of(data, message="ComponentControl", stream="control")
        )
        hello = next((frame.tree for frame in said if frame.name == "hello"), None)
        if hello is None and (data := await context.read()) is not grpc.aio.EOF:
            late = frames_of(data, message="ComponentControl", stream="control")
            hello = next((frame.tree for frame in late if frame.name == "hello"), None)
            said += late
        if hello is None:
            return
        self.hellos += 1
        self.noticed()
        if self.refusals:
            await _abort(self.refusals.pop(0), context)
        link = Link(len(self.links) + 1, hello, _metadata(context), said[0].name)
        self.links.append(link)
        link.say({"welcome": _welcome(link)})
        for frame in said:
            self._heard(link, frame)
        await self._converse(link, "control", context=context)

    async def _calls(self, _requests: Any, context: Any) -> None:
        data = await context.read()
        if data is grpc.aio.EOF:
            return
        first = from_proto(data, "ComponentCalls") or {}
        waiting = [one for one in self.links if not one.has_calls and not one.ended]
        if not waiting:
            await _abort({**UNAVAILABLE, "message": "Who is this?"}, context)
        link = waiting[-1]
        link.attachment_id = str(first.get("attachment_id", ""))
        link.calls_metadata = _metadata(context)
        link.has_calls = True
        for frame in frames_of(data, message="ComponentCalls", stream="calls"):
            self._heard(link, frame)
        self.noticed()
        await self._converse(link, "calls", context=context)

    async def _converse(self, link: Link, stream: str, *, context: Any) -> None:
        writing = asyncio.ensure_future(_write(link.out[stream], context))
        tasks = [
            asyncio.ensure_future(self._hear(link, stream, context=context)),
            asyncio.ensure_future(link.cut[stream].wait()),
        ]
        try:
            await asyncio.wait({*tasks, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not link.cut[stream].is_set():
                link.left.add(stream)
            link.ended.add(stream)
            self.noticed()
            # A write that is cancelled half-way would keep gRPC from ending the stream.
            link.out[stream].put_nowait(None)
            await asyncio.wait({writing}, timeout=WRITTEN_WITHIN_S)
            for task in (*tasks, writing):
                task.cancel()
            await asyncio.gather(*tasks, writing, return_exceptions=True)
        if link.why is not None:
            await _abort(link.why, context)

    async def _hear(self, link: Link, stream: str, *, context: Any) -> None:
        message = "ComponentCalls" if stream == "calls" else "ComponentControl"
        while (data := await context.read()) is not grpc.aio.EOF:
            for frame in frames_of(data, message=message, stream=stream):
                self._heard(link, frame)

    def _heard(self, link: Link, frame: Frame) -> None:
        link.frames.append(frame)
        if frame.name == "heartbeat" and link.is_answering:
            link.say({"heartbeat": {}})
        if frame.name == "credits":
            link.credits += int(str(frame.tree.get("granted", 0)))
        self.listener(link, frame)
        self.noticed()


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, control: Any, calls: Any) -> None:
        self._methods = {
            CONTROL_RPC: grpc.stream_stream_rpc_method_handler(control),
            CALLS_RPC: grpc.stream_stream_rpc_method_handler(calls),
        }

    def service(self, handler_call_details: Any) -> Any:
        return self._methods.get(handler_call_details.method)


def _welcome(link: Link) -> Tree:
    return {
        "component_id": "conformance",
        "acp_version": "1.0",
        "reattach_grace_ms": GRACE_MS,
        "heartbeat_ms": HEARTBEAT_MS,
        "max_frame_bytes": FRAME_BYTES_MAX,
        "attachment_id": link.wanted_id,
    }


def _metadata(context: Any) -> dict[str, str]:
    return {k: v for k, v in context.invocation_metadata() or () if isinstance(v, str)}


async def _write(queue: "asyncio.Queue[bytes | None]", context: Any) -> None:
    while (data := await queue.get()) is not None:
        await context.write(data)


async def _abort(error: Tree, context: Any) -> None:
    trailing = ((ACP_ERROR_TRAILER, to_proto({"error": error}, "ErrorBody")),)
    await context.abort(_STATUS[str(error["code"])], str(error["message"]), trailing)
