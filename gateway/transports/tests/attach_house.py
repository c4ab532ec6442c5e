"""A gateway's attach side on a real port, with a registry and no sessions; and a raw peer of it."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from acp_spec.codec import frames
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model.attach import AttachHeartbeat, AttemptKey, Hello, Key, Welcome
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.card import Card, Limits
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import payload
from acp_spec.sdk.attach import CALLS_RPC, CONTROL_RPC
from gateway.config.settings import Settings
from gateway.runtime.clock import SystemClock
from gateway.runtime.connection import Answer, Outgoing
from gateway.runtime.registry import Registry
from gateway.runtime.tests.stub_components import StubComponents, card
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.transports.attach_connection import AttachConnection
from gateway.transports.attach_hub import Adopt, AttachHub, AttachOptions
from gateway.transports.attach_server import AttachHandler
from gateway.transports.grpc_server import GrpcServer
from gateway.transports.http_server import http_gate
from gateway.transports.tests.in_memory import House
from gateway.transports.tests.listening import settings
from gateway.transports.tests.raw_peer import context, outgoing

UNTIL_S = 10.0
NUMBERS = b'{"n":9007199254740993,"x":0.10}'


class NoOrphans:
    """Remembers who claimed what."""

    def __init__(self) -> None:
        self.claimed: list[tuple[str, frozenset[Key]]] = []

    def claim(self, component_id: str, known: frozenset[Key], *, adopt: Adopt) -> None:
        self.claimed.append((component_id, known))


@dataclass
class AttachHouse:
    """What a test turns and looks at."""

    place: str
    hub: AttachHub
    registry: Registry
    orphans: NoOrphans
    house: House
    server: GrpcServer
    unsynced: list[Callable[[], None]]
    """What waits for the disk, while nothing gets there."""

    def connection(self, name: str = "ledger") -> AttachConnection:
        """The connection of the one instance of that name."""
        for component in self.registry.list():
            if component.card.name == name:
                found = self.registry.instance(component.component_id)
                assert found is not None
                assert isinstance(found.connection, AttachConnection)
                return found.connection
        raise AssertionError(f"nothing named {name} is attached")

    def states(self) -> list[str]:
        return [component.state for component in self.registry.list()]


@contextlib.asynccontextmanager
async def attach_house(
    options: AttachOptions = AttachOptions(),
    *,
    chosen: Settings | None = None,
    guarded: bool = False,
    acknowledges: bool = True,
) -> AsyncIterator[AttachHouse]:
    """An open house on a free port; `guarded`: tokens are required.

    `acknowledges` False: nothing is ever on disk, but for what a test calls of `unsynced`.
    """
    house, store, orphans = House(), MemoryStore(), NoOrphans()
    chosen = chosen or settings(**({"auth": {"mode": "required"}} if guarded else {}))
    registry = Registry(store, WriteThrough(store), dialer=StubComponents(), clock=SystemClock())
    numbers = itertools.count(1)
    loop = asyncio.get_running_loop()
    unsynced: list[Callable[[], None]] = []

    def after_sync(callback: Callable[[], None]) -> None:
        if acknowledges:
            loop.call_soon(callback)
        else:
            unsynced.append(callback)

    hub = AttachHub(
        registry,
        orphans,
        after_sync=after_sync,
        new_id=lambda: f"attachment-{next(numbers)}",
        options=options,
    )
    gate = http_gate(house.services, chosen)
    server = GrpcServer(house.services, gate, settings=chosen, extra=(AttachHandler(hub, gate),))
    await server.start()
    hub.open()
    try:
        yield AttachHouse(server.address, hub, registry, orphans, house, server, unsynced)
    finally:
        hub.close()
        await server.stop()
        await registry.close()


def served_card(name: str = "ledger", version: str = "1.0.0", *, concurrency: int = 4) -> Card:
    made = card(name, version)
    limits = Limits(max_request_bytes=4 * 1024 * 1024, max_concurrency=concurrency)
    return Card(
        name=made.name,
        version=made.version,
        roles=made.roles,
        actions=made.actions,
        limits=limits,
    )


@dataclass
class RawPeer:
    """A component as bytes: it says what a test says, right or wrong."""

    channel: grpc.aio.Channel
    metadata: tuple[tuple[str, str], ...] = ()
    control: Any = None
    calls: Any = None
    welcome: Welcome = field(default_factory=Welcome)

    async def hello(
        self,
        *,
        instance_id: str = "i",
        incarnation: int = 1,
        card: Card | None = None,
        in_flight: tuple[Key, ...] = (),
        finished: tuple[Key, ...] = (),
    ) -> Welcome:
        """Say hello on a new control stream and read the welcome; EOF: see `refusal`."""
        self.control = self.channel.stream_stream(CONTROL_RPC)(metadata=self.metadata)
        said = Hello(
            instance_id=instance_id,
            incarnation=incarnation,
            card=card or served_card(),
            in_flight=_keys(in_flight),
            finished_unacked=_keys(finished),
        )
        with contextlib.suppress(grpc.aio.AioRpcError):  # see `refusal`
            await self.say(said)
            (welcome,) = frames.read_gateway_control(await self.control.read())
            assert isinstance(welcome, Welcome)
            self.welcome = welcome
        return self.welcome

    async def attach(self, *, credits: int = 4, **stated: Any) -> Welcome:
        """Hello, and the calls stream with its first grant."""
        welcome = await self.hello(**stated)
        self.calls = self.channel.stream_stream(CALLS_RPC)(metadata=self.metadata)
        first = [frames.credits_frame(credits)] if credits else []
        data = frames.component_calls(first, attachment_id=welcome.attachment_id)
        await self.calls.write(data)
        return welcome

    async def say(self, said: frames.ControlFromComponent) -> None:
        await self.control.write(frames.control([frames.component_control_frame(said)]))

    async def beat(self, beat: AttachHeartbeat = AttachHeartbeat()) -> None:
        await self.say(beat)

    async def heard(self) -> list[frames.ControlFromGateway]:
        data = await self.control.read()
        assert data is not grpc.aio.EOF, "the control stream has ended"
        return frames.read_gateway_control(data)

    async def received(self, count: int) -> list[frames.FromGateway]:
        """So many frames of the calls stream, acknowledgements left out."""
        found: list[frames.FromGateway] = []
        while len(found) < count:
            data = await self.calls.read()
            assert data is not grpc.aio.EOF, "the calls stream has ended"
            read = frames.read_gateway_calls(data, max_bytes=1 << 30)
            found += [frame for frame in read if not isinstance(frame, frames.Acked)]
        return found

    async def acknowledged(self, count: int) -> list[Key]:
        found: list[Key] = []
        while len(found) < count:
            read = frames.read_gateway_calls(await self.calls.read(), max_bytes=1 << 30)
            found += [frame.key for frame in read if isinstance(frame, frames.Acked)]
        return found

    async def send(self, *sent: bytes) -> None:
        """Frames of the calls stream, as one message."""
        await self.calls.write(frames.component_calls(sent))

    async def refusal(self, stream: Any = None) -> AcpError:
        """What the status of an ended stream says."""
        stream = stream or self.control
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await stream.read() is not grpc.aio.EOF:
                pass
        code = await stream.code()
        trailer = dict(await stream.trailing_metadata() or ()).get("acp-error-bin")
        details = await stream.details() or ""
        return decode_trailer(code.value[0], details, trailer=trailer).error


@contextlib.asynccontextmanager
async def raw_peer(house: AttachHouse, *, token: str = "") -> AsyncIterator[RawPeer]:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(house.place, options=options) as channel:
        yield RawPeer(channel, metadata)


class Answers:
    """Sinks of attempts: what came, in order, by call."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Answer, bool]] = []
        self._changed = asyncio.Event()

    def sink(self, call_id: str) -> Any:
        def take(answer: Answer, late: bool) -> None:
            self.all.append((call_id, answer, late))
            self._changed.set()

        return take

    def of(self, call_id: str) -> Answer:
        (found,) = [answer for name, answer, late in self.all if name == call_id and not late]
        return found

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(UNTIL_S):
            while len(self.all) < count:
                self._changed.clear()
                await self._changed.wait()


def send(house: AttachHouse, answers: Answers, *sent: Outgoing) -> None:
    """Start attempts in this tick of the loop."""
    for one in sent:
        house.connection().send(one, answers.sink(one.context.call_id))


def call(call_id: str, **more: object) -> Outgoing:
    """An attempt to send; `more` as `outgoing` takes it."""
    timeout_ms = more.pop("timeout_ms", 5_000)
    made = context(call_id, timeout_ms=timeout_ms)  # type: ignore[arg-type]
    return outgoing(made, **more)  # type: ignore[arg-type]


def answer(key: tuple[str, int], output: bytes = NUMBERS) -> bytes:
    said = ExecuteResponse(output=payload(output), side_effect=SideEffect.PERFORMED)
    return frames.answer_frame(frames.answer_body(key, said))


async def called(peer: RawPeer, count: int) -> list[frames.Called]:
    found = await peer.received(count)
    assert all(isinstance(frame, frames.Called) for frame in found), found
    return [frame for frame in found if isinstance(frame, frames.Called)]


async def until(condition: Any) -> None:
    """Wait, a turn of the loop at a time, for something that has no event of its own."""
    async with asyncio.timeout(UNTIL_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def _keys(keys: tuple[Key, ...]) -> tuple[AttemptKey, ...]:
    return tuple(AttemptKey(call_id=call_id, attempt=attempt) for call_id, attempt in keys)
