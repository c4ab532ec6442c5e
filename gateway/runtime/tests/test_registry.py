"""Registration, leases, replicas, the active version, and what of it survives a restart."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
import pytest

from acp_spec.model.card import Card, Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import HealthStatus, Transport
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import Component, Heartbeat, RegisterRequest
from gateway.runtime.admission import RegistryLimits
from gateway.runtime.clock import ManualClock
from gateway.runtime.principal import LOCAL, Principal, Scope
from gateway.runtime.registry import Registry
from gateway.runtime.targets import Targets
from gateway.runtime.tests.stub_components import StubComponents, StubConnection, card
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table

T = TypeVar("T")
A, B, C = "http://a:1", "http://b:1", "http://c:1"
LIMITS = RegistryLimits(closing_grace_ms=0, credentials=frozenset({"vault"}))
SERVES_LEDGER = Principal(
    tenant="t", scopes=frozenset({Scope.COMPONENT}), names=("ledger",), subject="s"
)


class House:
    """A registry over one store, which can be started again."""

    def __init__(self, limits: RegistryLimits = LIMITS) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        self.components = StubComponents()
        self.limits = limits
        self.registry = self.restart()

    def restart(self) -> Registry:
        self.registry = Registry(
            self.store,
            WriteThrough(self.store),
            dialer=self.components,
            clock=self.clock,
            limits=self.limits,
        )
        return self.registry

    async def register(
        self,
        url: str,
        served: Card | None = None,
        *,
        principal: Principal = LOCAL,
        lease_seconds: int = 0,
        auth: str = "",
    ) -> Component:
        if served is not None:
            self.components.serve(url, served)
        request = RegisterRequest(url=url, lease_seconds=lease_seconds, auth=auth)
        return await self.registry.register(request, principal)


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 10))


def targets(registry: Registry) -> Targets:
    return registry  # checked by mypy: drivers may use it


async def refused(story: Coroutine[Any, Any, Any]) -> str:
    with pytest.raises(AcpFailure) as raised:
        await story
    return raised.value.error.reason


def test_a_component_is_registered_and_serves_the_version_it_says() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register(A, card())
        assert (shown.card.name, shown.state, shown.lease.lease_seconds) == ("ledger", "ACTIVE", 15)
        assert shown.url == A
        assert len(shown.digest) == 64
        found = house.registry.pick("ledger@1.0.0", "S1")
        assert found is not None
        assert found.component_id == shown.component_id
        assert house.registry.instance(shown.component_id) is found
        assert house.registry.catalog().actions() == ("balance",)
        assert house.registry.catalog() is house.registry.catalog()
        assert house.registry.pick("ledger@2.0.0", "S1") is None
        assert house.registry.get(shown.component_id) == house.registry.list()[0]

    run(story())


def test_registering_again_is_the_same_instance_with_its_warm_connection() -> None:
    async def story() -> None:
        house = House()
        first = await house.register(A, card())
        before = house.registry.pick("ledger@1.0.0", "S")
        again = await house.register("HTTP://A:1/".replace("HTTP", "http"))
        after = house.registry.pick("ledger@1.0.0", "S")
        assert first.component_id == again.component_id
        assert len(house.registry.list()) == 1
        assert before is not None
        assert after is not None
        assert after.connection is before.connection
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert [connection.is_closed for connection in house.components.opened] == [False, True]

    run(story())


def test_a_version_names_one_card() -> None:
    async def story() -> None:
        house = House()
        await house.register(A, card())
        house.components.serve(B, card(description="changed"))
        assert await refused(house.register(B)) == "IDEMPOTENCY_CONFLICT"
        house.components.serve(A, card(description="changed"))
        assert await refused(house.register(A)) == "IDEMPOTENCY_CONFLICT"
        assert len(house.registry.list()) == 1
        house.clock.advance(16_000)
        house.registry.sweep()
        await house.register(A)
        assert [shown.url for shown in house.registry.list()] == [A]
        await asyncio.sleep(0.01)
        found = house.registry.pick("ledger@1.0.0", "S")
        assert found is not None
        assert isinstance(found.connection, StubConnection)
        assert not found.connection.is_closed

    run(story())


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (RegisterRequest(url="ftp://x"), "INVALID_REQUEST"),
        (RegisterRequest(url=A, transport=Transport.ATTACH), "INVALID_REQUEST"),
        (RegisterRequest(url=A, lease_seconds=10**9), "INVALID_REQUEST"),
        (RegisterRequest(url=A, auth="nobody"), "INVALID_REQUEST"),
        (RegisterRequest(url=A, labels={"a": "b" * 200}), "INVALID_REQUEST"),
        (RegisterRequest(url=B), "UNAVAILABLE"),
        (RegisterRequest(url=C), "CONTRACT_VIOLATION"),
        (RegisterRequest(url="http://v2:1"), "VERSION_UNSUPPORTED"),
    ],
)
def test_what_cannot_be_admitted_is_refused_and_leaves_nothing(
    request_: RegisterRequest, reason: str
) -> None:
    async def story() -> None:
        house = House()
        house.components.serve(A, card())
        house.components.serve(C, card(version="one"))
        future = msgspec.structs.replace(card(), acp_versions=("2.0",))
        house.components.serve("http://v2:1", future)
        assert await refused(house.registry.register(request_, LOCAL)) == reason
        assert house.registry.list() == ()
        assert all(connection.is_closed for connection in house.components.opened)
        assert list(house.store.scan(Table.REGISTRY, b"")) == []

    run(story())


def test_a_token_serves_only_its_names_and_names_no_credential() -> None:
    async def story() -> None:
        house = House()
        house.components.serve(A, card("cards"))
        assert await refused(house.register(A, principal=SERVES_LEDGER)) == "PERMISSION_DENIED"
        house.components.serve(A, card())
        stolen = house.register(A, principal=SERVES_LEDGER, auth="vault")
        assert await refused(stolen) == "PERMISSION_DENIED"
        shown = await house.register(A, principal=SERVES_LEDGER)
        assert shown.state == "ACTIVE"
        assert "vault" not in str(await house.register(A, auth="vault"))
        found = house.registry.pick("ledger@1.0.0", "S")
        assert found is not None
        assert found.auth == "vault"

    run(story())


def test_sessions_spread_over_replicas_and_only_those_of_a_lost_one_move() -> None:
    async def story() -> None:
        house = House()
        shown = [await house.register(url, card()) for url in (A, B, C)]
        sessions = [f"S{number}" for number in range(300)]

        def placed() -> dict[str, str]:
            found = ((s, house.registry.pick("ledger@1.0.0", s)) for s in sessions)
            return {session: place.component_id for session, place in found if place is not None}

        before = placed()
        counts = [list(before.values()).count(one.component_id) for one in shown]
        assert min(counts) > 60
        await house.registry.drain(shown[0].component_id)
        after = placed()
        gone = shown[0].component_id
        assert gone not in after.values()
        assert all(after[s] == place for s, place in before.items() if place != gone)

    run(story())


def test_while_its_replica_is_avoided_a_session_goes_to_the_next_and_comes_back() -> None:
    async def story() -> None:
        house = House()
        for url in (A, B, C):
            await house.register(url, card())

        def placed(*avoided: str) -> list[str]:
            found = [
                house.registry.pick(
                    "ledger@1.0.0", f"S{n}", avoid=lambda one: one.component_id in avoided
                )
                for n in range(200)
            ]
            return [place.component_id for place in found if place is not None]

        before = placed()
        broken, second = before[0], next(place for place in before if place != before[0])
        without = placed(broken)
        assert broken not in without
        pairs = zip(before, without, strict=True)
        assert all(here == there for here, there in pairs if here != broken), "others stay"
        moved = {there for here, there in zip(before, without, strict=True) if here == broken}
        assert len(moved) == 2, "each by its own order"
        assert second not in placed(broken, second)
        assert placed(*{*before}) == before, "all of them avoided: each goes where it belongs"
        assert placed() == before

    run(story())


def test_a_lease_that_ends_expires_the_instance_and_a_heartbeat_brings_it_back() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register(A, card(), lease_seconds=2)
        house.clock.advance(1_999)
        house.registry.sweep()
        assert house.registry.get(shown.component_id).state == "ACTIVE"
        house.clock.advance(1)
        house.registry.sweep()
        assert house.registry.get(shown.component_id).state == "EXPIRED"
        assert house.registry.pick("ledger@1.0.0", "S") is None
        assert house.registry.catalog().names_with_action("balance") == ()
        left_at = house.clock.now_ms()
        house.clock.advance(500)
        assert house.registry.known_at("ledger@1.0.0") == left_at
        beat = Heartbeat(signals=Signals(inflight=3))
        again = await house.registry.heartbeat(shown.component_id, beat)
        assert again.state == "ACTIVE"
        assert again.signals == Signals(component="ledger", inflight=3)
        assert house.registry.known_at("ledger@1.0.0") == house.clock.now_ms()
        found = house.registry.pick("ledger@1.0.0", "S")
        assert found is not None
        assert found.signals_at_ms == house.clock.now_ms()

    run(story())


def test_an_instance_that_stays_expired_is_removed_also_from_disk() -> None:
    async def story() -> None:
        house = House()
        await house.register(A, card())
        house.clock.advance(15_000)
        house.registry.sweep()
        house.clock.advance(LIMITS.expired_grace_ms)
        house.registry.sweep()
        assert house.registry.list() == ()
        assert list(house.store.scan(Table.REGISTRY, b"")) == []
        assert house.registry.known_at("ledger@9.9.9") is None

    run(story())


def test_a_restart_keeps_registrations_draining_and_the_active_version() -> None:
    async def story() -> None:
        house = House()
        first = await house.register(A, card())
        await house.register(B, card(version="1.1.0"))
        third = await house.register(C, card(version="1.2.0"))
        await house.registry.drain(third.component_id)
        assert house.registry.catalog().active == {"ledger": "1.0.0"}
        await house.registry.activate("ledger", "1.1.0")
        opened = len(house.components.opened)
        house.clock.advance(10**9)
        registry = house.restart()
        assert len(house.components.opened) == opened
        assert registry.catalog().active == {"ledger": "1.1.0"}
        assert [c.state for c in registry.list()] == ["ACTIVE", "ACTIVE", "DRAINING"]
        registry.sweep()
        assert registry.get(first.component_id).state == "ACTIVE"
        assert registry.pick("ledger@1.1.0", "S") is not None
        assert registry.pick("ledger@1.2.0", "S") is None
        assert len(house.components.opened) == opened + 1

    run(story())


def test_a_newer_version_waits_until_it_is_activated() -> None:
    async def story() -> None:
        house = House()
        await house.register(A, card())
        await house.register(B, card(version="1.1.0"))
        offer = house.registry.catalog().version("ledger")
        assert offer is not None
        assert offer.pin == "ledger@1.0.0"
        assert await refused(house.registry.activate("ledger", "3.0.0")) == "NOT_FOUND"
        await house.registry.activate("ledger", "1.1.0")
        offer = house.registry.catalog().version("ledger")
        assert offer is not None
        assert offer.pin == "ledger@1.1.0"

    run(story())


def test_a_drained_instance_registers_again_and_is_active() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register(A, card())
        assert (await house.registry.drain(shown.component_id)).state == "DRAINING"
        await house.registry.heartbeat(shown.component_id, Heartbeat())
        assert house.registry.pick("ledger@1.0.0", "S") is None
        catalog = house.registry.catalog()
        assert catalog.version("ledger") is None, "no new session goes there"
        assert catalog.exact("ledger@1.0.0") is not None, "who is pinned knows what it says"
        assert (await house.register(A)).state == "ACTIVE"

    run(story())


def test_a_deleted_instance_is_gone_and_its_connection_closed() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register(A, card())
        await house.registry.delete(shown.component_id)
        assert await refused(house.registry.delete(shown.component_id)) == "NOT_FOUND"
        with pytest.raises(AcpFailure):
            house.registry.get(shown.component_id)
        await asyncio.sleep(0.01)
        assert house.components.opened[0].is_closed
        assert list(house.store.scan(Table.REGISTRY, b"")) == []

    run(story())


def test_three_lost_probes_make_it_unreachable_and_one_answer_brings_it_back() -> None:
    async def story() -> None:
        house = House()
        changes: list[int] = []
        shown = await house.register(A, card())
        house.registry.on_change(lambda: changes.append(1))
        for _ in range(2):
            house.registry.probed(shown.component_id, None)
        assert house.registry.get(shown.component_id).state == "ACTIVE"
        assert changes == []
        house.registry.probed(shown.component_id, None)
        assert house.registry.get(shown.component_id).state == "UNREACHABLE"
        assert house.registry.pick("ledger@1.0.0", "S") is None
        assert house.registry.catalog().exact("ledger@1.0.0") is not None
        house.registry.probed(shown.component_id, Health(status=HealthStatus.SERVING))
        assert house.registry.get(shown.component_id).state == "ACTIVE"
        assert len(changes) == 2
        house.registry.probed(shown.component_id, Health(status=HealthStatus.NOT_SERVING))
        assert house.registry.pick("ledger@1.0.0", "S") is None
        house.registry.heard(shown.component_id)
        assert house.registry.pick("ledger@1.0.0", "S") is not None
        house.registry.probed("cmp_unknown", None)

    run(story())


def test_nobody_there_moves_sessions_to_another_replica_but_the_last_one_stays() -> None:
    async def story() -> None:
        house = House()
        first = await house.register(A, card())
        second = await house.register(B, card())
        house.registry.unreached(first.component_id)
        assert house.registry.get(first.component_id).state == "UNREACHABLE"
        picked = [house.registry.pick("ledger@1.0.0", str(number)) for number in range(20)]
        assert {one.component_id for one in picked if one} == {second.component_id}
        house.registry.unreached(second.component_id)
        assert house.registry.get(second.component_id).state == "ACTIVE"
        house.registry.probed(first.component_id, Health(status=HealthStatus.SERVING))
        assert house.registry.get(first.component_id).state == "ACTIVE"
        house.registry.unreached("cmp_unknown")

    run(story())


def test_a_row_that_cannot_be_read_is_told_and_hides_no_other() -> None:
    async def story() -> None:
        house = House()
        await house.register(A, card())
        batch = house.store.batch()
        batch.put(Table.REGISTRY, b"cmp_broken", b"{")
        house.store.write(batch)
        registry = house.restart()
        assert len(registry.list()) == 1
        assert "cmp_broken" in registry.unreadable[0]

    run(story())


def test_an_attached_instance_lives_with_its_stream() -> None:
    async def story() -> None:
        house = House()
        first, second = (StubConnection(house.components, "") for _ in range(2))
        shown = house.registry.attach(card(), first, instance_id="i", principal=LOCAL)
        house.clock.advance(10**9)
        house.registry.sweep()
        assert house.registry.pick("ledger@1.0.0", "S") is not None
        house.registry.set_reachable(shown.component_id, False)
        assert house.registry.pick("ledger@1.0.0", "S") is None
        house.registry.attach(card(), second, instance_id="i", principal=LOCAL)
        found = house.registry.pick("ledger@1.0.0", "S")
        assert found is not None
        assert found.connection is second
        house.registry.detach(shown.component_id, first)
        assert house.registry.pick("ledger@1.0.0", "S") is not None
        assert house.registry.silent(0) == ()
        house.registry.detach(shown.component_id, second)
        assert house.registry.list() == ()
        with pytest.raises(AcpFailure, match="PERMISSION_DENIED"):
            house.registry.attach(card("cards"), first, instance_id="i", principal=SERVES_LEDGER)
        assert house.restart().list() == ()

    run(story())


def test_the_number_of_instances_is_bounded() -> None:
    async def story() -> None:
        house = House(RegistryLimits(instances_max=1))
        await house.register(A, card())
        assert (await house.register(A)).state == "ACTIVE"
        assert await refused(house.register(B, card())) == "OVERLOADED"

    run(story())
