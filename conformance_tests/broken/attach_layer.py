"""A layer between a component that attaches and whom it dials: one rule over the frames of both.

It stands in the SDK's own channel, so that everything else is the real component. A rule sees
trees; what it does not touch passes as the bytes it was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import grpc

from acp_spec.sdk.attach import Dialling
from conformance_tests.messages.tree import Tree, from_proto, to_proto

Frames: TypeAlias = list[Tree]
HEARTBEAT_S: Final = 0.25


@dataclass(slots=True, kw_only=True)
class AttachRule:
    """What is said and heard otherwise. A function gets (stream, frame) and gives frames back."""

    says: Callable[[str, Tree], Frames] | None = None
    hears: Callable[[str, Tree], Frames] | None = None
    dials: Callable[[], Awaitable[None]] | None = None
    """Before the first message of a control stream."""
    first: Callable[[Tree], Tree] | None = None
    """The first message of a calls stream."""
    metadata: bool = True
    deaf: bool = False
    """Bytes that are no message are not noticed."""
    holds_on: bool = False
    """The end of the calls stream is not noticed."""
    beats: bool = False
    """A gateway that says nothing is heard all the same."""
    stays: bool = False
    """Refused for good, it dials again."""
    refused: list[str] = field(default_factory=list)
    """What streams ended with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredDialling(Dialling):
    """The SDK dials through the rule."""

    rule: AttachRule

    def channel(self) -> Any:
        return _Channel(Dialling.channel(self), self.rule)


class _Channel:
    def __init__(self, real: grpc.aio.Channel, rule: AttachRule) -> None:
        self._real = real
        self._rule = rule

    def stream_stream(self, path: str) -> Callable[..., "_Stream"]:
        method = self._real.stream_stream(path)
        name = "calls" if path.endswith("Calls") else "control"

        def open_(metadata: tuple[tuple[str, str], ...]) -> _Stream:
            stated = metadata if self._rule.metadata else ()
            return _Stream(method(metadata=stated), name, rule=self._rule)

        return open_

    async def close(self) -> None:
        await self._real.close()


class _Stream:
    """One stream; `read` and `write` as the SDK uses them."""

    def __init__(self, real: Any, name: str, *, rule: AttachRule) -> None:
        self._real = real
        self._name = name
        self._rule = rule
        self._is_first = True
        self._reading: asyncio.Future[Any] | None = None

    async def write(self, data: bytes) -> None:
        rule, message = self._rule, f"Component{self._name.title()}"
        is_first, self._is_first = self._is_first, False
        if is_first and self._name == "control" and rule.dials is not None:
            await rule.dials()
        tree = from_proto(data, message) or {}
        changed = tree
        if is_first and self._name == "calls" and rule.first is not None:
            changed = rule.first(changed)
        if rule.says is not None:
            said = [one for frame in _frames(tree) for one in rule.says(self._name, frame)]
            changed = {**changed, "frames": list(said)}
        await self._real.write(data if changed == tree else to_proto(changed, message))

    async def read(self) -> Any:
        while True:
            data = await self._next()
            if data is grpc.aio.EOF or (self._rule.hears is None and not self._rule.deaf):
                return data
            tree = from_proto(data, f"Gateway{self._name.title()}")
            if tree is None and self._rule.deaf:
                continue
            if tree is None or self._rule.hears is None:
                return data
            heard = [one for f in _frames(tree) for one in self._rule.hears(self._name, f)]
            if heard == _frames(tree):
                return data
            if heard:
                return to_proto({**tree, "frames": list(heard)}, f"Gateway{self._name.title()}")

    async def _next(self) -> Any:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._real.read())
            self._reading.add_done_callback(_looked_at)
        if self._rule.beats and self._name == "control":
            done, _ = await asyncio.wait({self._reading}, timeout=HEARTBEAT_S)
            if not done:
                return to_proto({"frames": [{"heartbeat": {}}]}, "GatewayControl")
        try:
            data = await asyncio.shield(self._reading)
        except grpc.aio.AioRpcError as failed:
            self._rule.refused.append(failed.details() or "")
            if self._name == "calls" and self._rule.holds_on:
                await asyncio.Event().wait()
            raise
        if data is grpc.aio.EOF and self._name == "calls" and self._rule.holds_on:
            await asyncio.Event().wait()
        self._reading = None
        return data


def _looked_at(reading: "asyncio.Future[Any]") -> None:
    """Who waited may be gone; then nobody asks why it failed."""
    if not reading.cancelled():
        reading.exception()


def _frames(tree: Tree) -> Frames:
    found = tree.get("frames")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
