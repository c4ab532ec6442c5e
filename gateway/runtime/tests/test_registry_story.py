"""The registry under any order of events: it always agrees with a plain table of states."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from acp_spec.model.card import Health
from acp_spec.model.enums import HealthStatus, Role
from acp_spec.model.session import Heartbeat
from gateway.runtime.registered import State
from gateway.runtime.tests.stub_components import card
from gateway.runtime.tests.test_registry import A, B, C, House, refused
from gateway.stores.ports import Table

T = TypeVar("T")
URLS = st.sampled_from([A, B, C])
VERSIONS = st.sampled_from(["1.0.0", "1.1.0", "2.0.0"])
NAMES = st.sampled_from(["ledger", "cards"])


class RegistryStory(RuleBasedStateMachine):
    """Any order of events: what the registry says always agrees with a plain table of states."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House()
        self.loop = asyncio.new_event_loop()
        self.state: dict[str, State] = {}

    def teardown(self) -> None:
        self.loop.run_until_complete(self.house.registry.close())
        self.loop.close()

    def do(self, story: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(story)

    @rule(url=URLS, name=NAMES, version=VERSIONS, plans=st.booleans())
    def register(self, url: str, name: str, version: str, *, plans: bool) -> None:
        pin = f"{name}@{version}"
        roles = (Role.EXECUTOR, Role.PLANNER) if plans else (Role.EXECUTOR,)
        served = card(name, version, roles=roles)
        held = [
            c
            for c in self.house.registry.list()
            if f"{c.card.name}@{c.card.version}" == pin and c.card != served
        ]
        if any(c.state != "EXPIRED" for c in held):
            assert self.do(refused(self.house.register(url, served))) == "IDEMPOTENCY_CONFLICT"
            return
        shown = self.do(self.house.register(url, served))
        for c in held:
            self.state.pop(c.component_id)
        self.state[shown.component_id] = State.ACTIVE

    @precondition(lambda self: bool(self.state))
    @rule(data=st.data(), event=st.sampled_from(["drain", "beat", "lost", "serving", "delete"]))
    def happen(self, data: st.DataObject, event: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.state)))
        registry, before = self.house.registry, self.state[key]
        drained = registry.get(key).state == "DRAINING" or self.was_drained(key)
        if event == "drain":
            self.do(registry.drain(key))
            if before is not State.EXPIRED:
                self.state[key] = State.DRAINING
        elif event == "delete":
            self.do(registry.delete(key))
            del self.state[key]
        elif event == "lost":
            for _ in range(3):
                registry.probed(key, None)
            if before is State.ACTIVE:
                self.state[key] = State.UNREACHABLE
        else:
            if event == "beat":
                self.do(registry.heartbeat(key, Heartbeat()))
            else:
                registry.probed(key, Health(status=HealthStatus.SERVING))
            self.state[key] = State.DRAINING if drained else State.ACTIVE

    def was_drained(self, key: str) -> bool:
        row = msgspec.json.decode(self.house.store.get(Table.REGISTRY, key.encode()) or b"{}")
        return bool(row.get("draining"))

    @rule()
    def every_lease_ends(self) -> None:
        self.house.clock.advance(15_000)
        self.house.registry.sweep()
        self.state = dict.fromkeys(self.state, State.EXPIRED)

    @rule()
    def restart(self) -> None:
        self.do(self.house.registry.close())
        self.house.restart()
        self.state = {
            key: State.DRAINING if self.was_drained(key) else State.ACTIVE for key in self.state
        }

    @invariant()
    def what_is_shown_is_what_happened(self) -> None:
        shown = {c.component_id: State(c.state) for c in self.house.registry.list()}
        assert shown == self.state

    @invariant()
    def only_active_instances_are_picked_and_every_active_pin_is(self) -> None:
        registry = self.house.registry
        for shown in registry.list():
            pin = f"{shown.card.name}@{shown.card.version}"
            found = registry.pick(pin, "S")
            active = {
                c.component_id
                for c in registry.list()
                if f"{c.card.name}@{c.card.version}" == pin and c.state == "ACTIVE"
            }
            assert (found is not None) == bool(active)
            assert found is None or found.component_id in active

    @invariant()
    def every_name_has_one_active_version(self) -> None:
        names = {c.card.name for c in self.house.registry.list()}
        assert set(self.house.registry.catalog().active) == names


TestRegistryStory = RegistryStory.TestCase
TestRegistryStory.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
