"""Which version a session gets when it opens: what is marked, what stays, what costs nothing."""

import asyncio
from typing import Any

import msgspec
import pytest

from acp_spec.model.enums import Mode
from acp_spec.model.session import OpenSession
from gateway.engine.catalog import Catalog
from gateway.engine.tests.test_recording import offer
from gateway.engine.workflow_file import parse_stored
from gateway.governance.rollout import Order
from gateway.governance.rollout_spec import Kind, Sticky, Subject
from gateway.runtime.rollout_traffic import Intent, Opening, RolloutTraffic, twin_id
from gateway.runtime.tests.test_rollouts import House
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import WriteThrough
from gateway.telemetry.metrics import Metrics

FILE = b"""
workflow: town
version: %s
steps:
  - {name: a, role: execute, component: planner, action: go}
  - {name: b, role: execute, component: other, action: look}
"""
CATALOG = Catalog(
    (
        offer("planner", "1.0.0", "go"),
        offer("planner", "2.0.0", "go"),
        offer("other", "1.0.0", "look"),
    )
)
PINS = {"step:a": "planner@1.0.0", "step:b": "other@1.0.0"}
ON_CANDIDATE = PINS | {"step:a": "planner@2.0.0"}


class Door:
    """Openings of one gateway, as far as rollouts have a say in them."""

    def __init__(self) -> None:
        self.house = House()
        durable = WriteThrough(self.house.store)
        workflows = Workflows(
            self.house.store, durable, clock=self.house.clock, catalog=lambda: CATALOG
        )
        for version in (b"1.0.0", b"2.0.0"):
            asyncio.run(workflows.put("town", version.decode(), source=FILE % version))
        self.workflows = workflows
        self.traffic = RolloutTraffic(
            self.house.rollouts, workflows, policies=self.house.policies, metrics=Metrics()
        )

    def opens(self, number: int = 0, *, pins: dict[str, str] = PINS, **over: Any) -> Intent:
        workflow, _ = parse_stored(FILE % b"1.0.0")
        session_id = f"01J00000000000000000{number:06d}"
        request = OpenSession(**{"workflow": "town", **over})
        opening = Opening(tenant="t", request=request, pins_of=lambda other: pins)
        intent = Intent(session_id=session_id, workflow=workflow, pins=pins)
        return self.traffic.intended(intent, opening, catalog=CATALOG)

    def many(self, count: int = 400, **over: Any) -> list[Intent]:
        return [self.opens(number, **over) for number in range(count)]

    def start(self, promotions: int = 0, **over: Any) -> str:
        rollout = self.house.start(**over)
        for _ in range(promotions):
            self.house.order(rollout, Order.PROMOTE)
        return rollout


@pytest.fixture
def door() -> Door:
    return Door()


def arms(intents: list[Intent]) -> set[tuple[str, str, bool]]:
    """(stage, arm, served by the candidate) of those that take part."""
    return {
        (mark.stage, mark.arm, intent.pins == ON_CANDIDATE)
        for intent in intents
        for mark in intent.marks
    }


def test_without_a_rollout_nothing_is_asked(door: Door) -> None:
    assert door.traffic.is_idle
    door.start()
    assert not door.traffic.is_idle


def test_beside_the_session_stays_as_it_is_and_names_its_twin(door: Door) -> None:
    rollout = door.start()
    found = door.many()
    assert arms(found) == {("CANARY", "BASELINE", False)}
    chosen = [intent for intent in found if intent.marks]
    assert 150 < len(chosen) < 250
    assert {one.marks[0].twin for one in chosen} == {
        twin_id(one.session_id, rollout) for one in chosen
    }
    assert all(one.pins is PINS for one in found)


def test_controlled_gives_one_arm_the_candidate_and_marks_the_other(door: Door) -> None:
    door.start(2)
    assert arms(door.many()) == {
        ("CONTROLLED", "CANDIDATE", True),
        ("CONTROLLED", "BASELINE", False),
    }


def test_nobody_is_given_what_is_not_there(door: Door) -> None:
    door.start(2)
    door.house.planners.is_there = False
    assert arms(door.many()) == set()


def test_what_a_rollout_does_not_concern_stays_out_of_it(door: Door) -> None:
    door.start(2, workflows=("village",))
    assert arms(door.many(50)) == set()
    door.house.order("component-planner-2.0.0", Order.ROLLBACK)
    door.start(2, rollout="again")
    assert arms(door.many(50, mode=Mode.MANUAL)) == set()
    assert arms(door.many(50, pins={"step:b": "other@1.0.0"})) == set()


def test_a_version_asked_for_by_name_is_not_replaced(door: Door) -> None:
    door.house.planners.active = lambda name: "1.0.0"  # type: ignore[method-assign]
    subject = Subject(kind=Kind.WORKFLOW, name="town", candidate="2.0.0")
    door.start(2, subject=subject)
    versions = {one.workflow.version for one in door.many() if one.workflow}
    assert versions == {"1.0.0", "2.0.0"}
    asked = {one.workflow.version for one in door.many(workflow="town@^1") if one.workflow}
    assert asked == {"1.0.0"}


def test_a_version_serves_by_its_rollout_from_the_first_stage_with_callers_on(door: Door) -> None:
    door.house.planners.active = lambda name: "1.0.0"  # type: ignore[method-assign]
    one, two = (door.workflows.exact("town", version) for version in ("1.0.0", "2.0.0"))
    subject = Subject(kind=Kind.WORKFLOW, name="town", candidate="2.0.0")
    rollout = door.start(1, subject=subject)
    assert not door.traffic.serves(two), "callers get the baseline in CANARY and SHADOW"
    door.house.order(rollout, Order.PROMOTE)
    assert (door.traffic.serves(one), door.traffic.serves(two)) == (False, True)
    door.house.order(rollout, Order.ROLLBACK)
    assert not door.traffic.serves(two)


def test_a_tenant_or_a_key_keeps_its_version(door: Door) -> None:
    door.start(2, sticky=Sticky.TENANT)
    assert len({msgspec.json.encode(one.pins) for one in door.many(50)}) == 1
    door.house.order("component-planner-2.0.0", Order.ROLLBACK)
    door.start(2, rollout="by-key", sticky=Sticky.SESSION_KEY)
    assert len({msgspec.json.encode(one.pins) for one in door.many(50, session_key="k")}) == 1


def test_a_fault_of_a_rollout_costs_nobody_a_session(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.start(2)

    def broken(rollout: object) -> bool:
        raise RuntimeError("our own mistake")

    monkeypatch.setattr(door.house.rollouts, "is_there", broken)
    assert all(one.pins is PINS and not one.marks for one in door.many(20))
