"""Registry, dialer and both transports together, against a component made with the SDK."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Effect, Idempotency, Transport
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import body_digest
from acp_spec.model.session import Component as Registered
from acp_spec.model.session import RegisterRequest
from acp_spec.sdk.component import Component
from acp_spec.sdk.serving import Server, parse_address
from gateway.config.networks import LOOPBACK_NETWORKS, Network
from gateway.runtime.clock import SystemClock
from gateway.runtime.connection import Outgoing
from gateway.runtime.principal import LOCAL
from gateway.runtime.prober import Prober, ProberLimits
from gateway.runtime.registry import Registry
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.transports.address_guard import AddressGuard
from gateway.transports.dialer import ComponentDialer
from gateway.transports.tests.raw_peer import (
    PATIENT_MS,
    Answers,
    answering,
    context,
    http,
    one_call,
    outgoing,
    peer,
    run,
)

BOTH = [Transport.HTTP, Transport.GRPC]


def ledger(asleep: asyncio.Event) -> Component:
    component = Component("ledger", "1.2.0")

    @component.action("echo", effect=Effect.READ, idempotency=Idempotency.NATURAL)
    async def echo(arguments: object, call: object) -> object:
        return arguments

    @component.action("fail")
    async def fail(arguments: object, call: object) -> object:
        raise AcpFailure(error(Reason.RATE_LIMITED, "not now"))

    @component.action("sleep")
    async def sleep(arguments: object, call: object) -> object:
        asleep.set()
        await asyncio.sleep(60)
        return None

    return component


def call(action: str, arguments: bytes = b"{}") -> Outgoing:
    stamped = msgspec.structs.replace(context(), body_digest=body_digest(action, arguments))
    body = b'{"action":"%b","arguments":%b}' % (action.encode(), arguments)
    return outgoing(stamped, body=body)


@contextlib.asynccontextmanager
async def served(asleep: asyncio.Event | None = None) -> AsyncIterator[dict[Transport, str]]:
    """The component on free ports; its two URLs."""
    loopback = parse_address("127.0.0.1:0")
    server = Server(ledger(asleep or asyncio.Event()), http=loopback, grpc=loopback)
    await server.start()
    try:
        yield {Transport.HTTP: f"http://{server.http}", Transport.GRPC: f"grpc://{server.grpc}"}
    finally:
        await server.stop(drain_s=0)


def registry_for(networks: tuple[Network, ...] = LOOPBACK_NETWORKS) -> Registry:
    store = MemoryStore()
    dialer = ComponentDialer(AddressGuard(networks))
    return Registry(store, WriteThrough(store), dialer=dialer, clock=SystemClock())


async def register(registry: Registry, url: str, transport: Transport) -> Registered:
    return await registry.register(RegisterRequest(url=url, transport=transport), LOCAL)


async def refused(registry: Registry, url: str, transport: Transport) -> str:
    with pytest.raises(AcpFailure) as raised:
        await register(registry, url, transport)
    assert raised.value.error.message
    return raised.value.error.reason


@pytest.mark.parametrize("transport", BOTH)
def test_an_sdk_component_is_registered_called_and_probed(transport: Transport) -> None:
    async def story() -> None:
        async with served() as urls:
            registry = registry_for()
            shown = await register(registry, urls[transport], transport)
            assert (shown.card.name, shown.url) == ("ledger", urls[transport])
            found = registry.pick("ledger@1.2.0", "S")
            assert found is not None
            numbers = b'{"n":9007199254740993,"x":0.10}'
            answer = await one_call(found.connection, call("echo", numbers))
            assert answer.error is None
            assert numbers in bytes(answer.response)
            answer = await one_call(found.connection, call("fail"))
            assert answer.error is not None
            assert (answer.error.reason, answer.answered) == ("RATE_LIMITED", True)
            limits = ProberLimits(interval_ms=1, tick_ms=5, timeout_ms=PATIENT_MS)
            prober = Prober(registry, SystemClock(), limits=limits)
            prober.start()
            await asyncio.sleep(0.1)
            assert registry.get(shown.component_id).state == "ACTIVE"
            await prober.close()
            await registry.close()

    run(story())


@pytest.mark.parametrize("transport", BOTH)
def test_a_running_call_is_cancelled_by_its_id(transport: Transport) -> None:
    async def story() -> None:
        asleep = asyncio.Event()
        async with served(asleep) as urls:
            registry = registry_for()
            await register(registry, urls[transport], transport)
            found = registry.pick("ledger@1.2.0", "S")
            assert found is not None
            answers = Answers()
            found.connection.send(call("sleep"), answers)
            await asleep.wait()
            told = await found.connection.cancel("call-1", 0, timeout_ms=PATIENT_MS)
            answer = await answers.wait()
            assert answer.error is not None
            assert told.state.name in ("STOPPED", "RUNNING")
            await registry.close()

    run(story())


def test_both_bindings_give_one_card_with_one_digest() -> None:
    async def story() -> None:
        async with served() as urls:
            registry = registry_for()
            shown = [await register(registry, urls[transport], transport) for transport in BOTH]
            assert shown[0].digest == shown[1].digest
            assert shown[0].component_id != shown[1].component_id
            await registry.close()

    run(story())


@pytest.mark.parametrize("transport", BOTH)
def test_what_cannot_be_reached_is_told_apart(
    transport: Transport, free_port: Callable[[], int]
) -> None:
    async def story() -> None:
        scheme = transport.value.lower()
        other = "grpc" if scheme == "http" else "http"
        open_registry, closed_registry = registry_for(), registry_for(())
        url = f"{scheme}://127.0.0.1:{free_port()}"
        assert await refused(open_registry, url, transport) == "UNAVAILABLE"
        assert await refused(closed_registry, url, transport) == "PERMISSION_DENIED"
        assert await refused(open_registry, f"{other}://a:1", transport) == "INVALID_REQUEST"
        metadata = f"{scheme}://169.254.169.254:80"
        assert await refused(open_registry, metadata, transport) == "PERMISSION_DENIED"
        assert open_registry.list() == ()
        async with peer(answering(http(b"who are you", status="401 X", kind="text/plain"))) as odd:
            url = f"http://127.0.0.1:{odd.port}"
            assert await refused(open_registry, url, Transport.HTTP) == "CONTRACT_VIOLATION"

    run(story())
