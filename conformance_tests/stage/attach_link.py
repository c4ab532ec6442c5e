"""One pair of attach streams that an actor opened to a gateway: bytes in and out, and what came.

`Between` stands where a broken gateway would be: it changes frames on their way, both directions.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from conformance_tests.messages.tree import Tree, from_proto, to_proto
from conformance_tests.raw.attach_bodies import Pieces
from conformance_tests.raw.attach_end import CALLS_RPC, CONTROL_RPC, frames_of

Frames: TypeAlias = list[Tree]
RPC: Final = {"control": CONTROL_RPC, "calls": CALLS_RPC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """One small rule: frames said and heard otherwise, other raw bytes, another end."""

    says: Callable[[str, Tree], Frames] = lambda stream, frame: [frame]
    hears: Callable[[str, Tree], Frames] = lambda stream, frame: [frame]
    ended: Callable[[Tree], Tree] = lambda error: error
    raw: Callable[[bytes], bytes] = lambda data: data
    lasts: bool = False
    """That control ends because calls did is not noticed."""


NOTHING: Final = Between()
Hear: TypeAlias = Callable[["AttachLink", Tree], None]


@dataclass(slots=True, eq=False)
class AttachLink:
    """Streams are named `control` and `calls`."""

    number: int
    channel: grpc.aio.Channel
    between: Between
    hear: Hear
    metadata: tuple[tuple[str, str], ...]
    streams: dict[str, Any] = field(default_factory=dict)
    welcome: Tree | None = None
    errors: dict[str, Tree] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    """Those that this side ended."""
    broke: bool = False
    """gRPC itself lost the status here: a write met the end. It says nothing of the gateway."""
    beats: int = 0
    drained: bool = False
    largest: int = 0
    pieces: Pieces = field(default_factory=lambda: Pieces("CallFrame"))
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_open(self) -> bool:
        return self.welcome is not None and not self.ended

    @property
    def error(self) -> Tree:
        """Of control, if the gateway ended it with one, else of calls."""
        return self.errors.get("control") or self.errors.get("calls") or {}

    async def open(self, stream: str, first: bytes, *, listen_s: float = 0.0) -> None:
        """Begin a stream with these bytes; before them it is heard for so long whether it ends."""
        self.streams[stream] = self.channel.stream_stream(RPC[stream])(metadata=self.metadata)
        if not listen_s:
            await self.write(stream, first)
        self.tasks.append(asyncio.create_task(self._read(stream)))
        if listen_s and not await self.until(lambda: stream in self.ended, within_s=listen_s):
            await self.write(stream, first)

    async def say(self, stream: str, frame: Tree) -> None:
        """A frame, as the rule lets it pass; nothing where the stream has ended."""
        message = f"Component{stream.title()}"
        for one in self.between.says(stream, frame):
            await self.write(stream, to_proto({"frames": [one]}, message))

    async def write(self, stream: str, data: bytes) -> None:
        # The reader learns why a stream has ended.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self.streams[stream].write(data)

    async def close(self, *streams: str) -> None:
        """End streams from this side; all of them without names."""
        for stream in streams or tuple(self.streams):
            self.left.add(stream)
            self.ended.add(stream)
            self.streams[stream].cancel()
        if not streams:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            await self.channel.close()

    async def until(self, condition: Callable[[], bool], *, within_s: float) -> bool:
        """Whether it became so in time."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not condition():
            left_s = deadline - asyncio.get_running_loop().time()
            self.news.clear()
            try:
                async with asyncio.timeout(max(0.0, left_s)):
                    await self.news.wait()
            except TimeoutError:
                return condition()
        return True

    async def _read(self, stream: str) -> None:
        message = f"Gateway{stream.title()}"
        call = self.streams[stream]
        try:
            while (data := await call.read()) is not grpc.aio.EOF:
                for frame in frames_of(data, message=message, stream=stream):
                    tree: Tree = {frame.name: frame.tree} if frame.name else {}
                    for one in self.between.hears(stream, tree):
                        if stream == "calls":
                            size = len(to_proto(one, f"{message}Frame"))
                            self.largest = max(self.largest, size)
                        self.hear(self, one)
                self.news.set()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # the status says it
        await self._over(stream, call)

    async def _over(self, stream: str, call: Any) -> None:
        """The end of a stream; without `acp-error-bin` it has no error."""
        if stream not in self.left:
            self.broke = str(await call.details() or "").startswith("Internal error from Core")
            trailing = await call.trailing_metadata() or ()
            stated = next((v for k, v in trailing if k == ACP_ERROR_TRAILER), None)
            body = None if stated is None else from_proto(stated, "ErrorBody")
            error = (body or {}).get("error")
            if isinstance(error, dict):
                self.errors[stream] = self.between.ended(error)
            elif self.between.lasts and stream == "control" and "calls" in self.left:
                return
        self.ended.add(stream)
        self.news.set()
